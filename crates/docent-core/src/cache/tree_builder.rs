use super::TreeCache;
use super::tree_options::TreeOptions;
use crate::client::Client;
use crate::error::Error;
use std::fmt;
use std::sync::Arc;

/// Settings of a [`TreeCache`].
#[derive(Clone)]
#[must_use = "a builder does nothing until it is built"]
pub struct TreeCacheBuilder {
    client: Client,
    path: String,
    options: TreeOptions,
}

impl TreeCacheBuilder {
    pub(super) fn new(client: &Client, path: String) -> Self {
        Self { client: client.clone(), path, options: TreeOptions::default() }
    }

    /// Keeps nodes down to `depth` below the path only: 0 keeps that node alone, 1 its children, too. No
    /// limit by default.
    pub fn max_depth(mut self, depth: usize) -> Self {
        self.options.max_depth = depth;
        self
    }

    /// Keeps the nodes' stats without their data, which is not read either: each shown node has empty data.
    /// Needs no permission `READ` on nodes without children.
    pub fn without_data(mut self) -> Self {
        self.options.without_data = true;
        self
    }

    /// Keeps a node below the path only if `select` says true of its path; what is below a node that is left
    /// out is left out, too. It is called for each name of each listing, by the task of the cache, so that it
    /// must be quick and always say the same of one path. A node for which it panics is left out, and that is
    /// logged.
    pub fn select(mut self, select: impl Fn(&str) -> bool + Send + Sync + 'static) -> Self {
        self.options.select = Some(Arc::new(select));
        self
    }

    /// Begins to keep the tree.
    ///
    /// # Errors
    /// `InvalidInput` when the path breaks a rule, `Closed`.
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
