use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// Predicate that says which paths are kept.
type Select = Arc<dyn Fn(&str) -> bool + Send + Sync>;

/// Settings of a cache of a tree.
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
    /// True when the user wants the node at a path. Without an answer it is left out.
    pub(super) fn selects(&self, path: &str) -> bool {
        let Some(select) = &self.select else { return true };
        catch_unwind(AssertUnwindSafe(|| select(path))).unwrap_or_else(|payload| {
            // Its drop is code of the user's, too, and nothing would catch that.
            std::mem::forget(payload);
            tracing::error!(path, "the selection of a cache panicked: the node is left out");
            false
        })
    }
}
