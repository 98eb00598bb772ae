use super::TreeCache;
use super::tree_options::TreeOptions;
use crate::client::Client;
use crate::error::Error;
use std::fmt;
use std::sync::Arc;

/// Settings of a [`TreeCache`].
#[derive(Clone)]
#[must_use = "a builder does nothing until `build` is called"]
pub struct TreeCacheBuilder {
    client: Client,
    path: String,
    options: TreeOptions,
}

impl TreeCacheBuilder {
    pub(super) fn new(client: &Client, path: String) -> Self {
        Self { client: client.clone(), path, options: TreeOptions::default() }
    }

    /// Caches only nodes up to `depth` levels below the path: 0 means only the node itself, 1 includes its
    /// children. No limit by default.
    pub fn max_depth(mut self, depth: usize) -> Self {
        self.options.max_depth = depth;
        self
    }

    /// Caches the stats of the nodes without their data. The data is not read, and each shown node has empty
    /// data. Nodes without children then need no `READ` permission.
    pub fn without_data(mut self) -> Self {
        self.options.without_data = true;
        self
    }

    /// Caches a node below the path only if `select` returns true for its path; otherwise the node and
    /// everything below it are omitted.
    ///
    /// The cache's task calls `select` for each name of each listing. Therefore `select` must be fast and
    /// always return the same result for a path. If it panics, the node is omitted and the panic is logged.
    pub fn select(mut self, select: impl Fn(&str) -> bool + Send + Sync + 'static) -> Self {
        self.options.select = Some(Arc::new(select));
        self
    }

    /// Starts caching the tree.
    ///
    /// # Errors
    /// `InvalidInput` if the path breaks a rule, `Closed`.
    pub fn build(self) -> Result<TreeCache, Error> {
        TreeCache::start(&self.client, self.path, self.options)
    }
}

impl fmt::Debug for TreeCacheBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TreeCacheBuilder")
            .field("path", &self.path)
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}
