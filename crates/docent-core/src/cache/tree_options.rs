use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// Predicate that returns whether a path is cached.
type Select = Arc<dyn Fn(&str) -> bool + Send + Sync>;

/// Settings of a tree cache.
#[derive(Clone)]
pub(super) struct TreeOptions {
    pub(super) max_depth: usize,
    pub(super) without_data: bool,
    pub(super) select: Option<Select>,
}

impl Default for TreeOptions {
    fn default() -> Self {
        Self { max_depth: usize::MAX, without_data: false, select: None }
    }
}

impl fmt::Debug for TreeOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TreeOptions")
            .field("max_depth", &self.max_depth)
            .field("without_data", &self.without_data)
            .field("selects", &self.select.is_some())
            .finish()
    }
}

impl TreeOptions {
    /// Returns whether the user selects the node at a path. A node whose selection panics is omitted.
    pub(super) fn selects(&self, path: &str) -> bool {
        let Some(select) = &self.select else { return true };
        catch_unwind(AssertUnwindSafe(|| select(path))).unwrap_or_else(|payload| {
            // The drop of the payload is user code as well, and a panic in it would not be caught.
            std::mem::forget(payload);
            // Event: The closure that selects the nodes of a tree cache panicked. The cache omits the node.
            // Action: Fix the closure passed to the cache's builder.
            // Without client: a panic is logged where the closure is called.
            tracing::error!(target: "docent::cache", %path, "the cache's node selection panicked; omitting the node");
            false
        })
    }
}
