use super::TaskEnd;
use crate::operation::Shared;
use std::sync::Arc;

/// Entry of a task in the table, which it leaves when the task ends, also by a panic.
pub(crate) struct TableEntry {
    shared: Arc<Shared>,
    full: String,
    left: bool,
}

impl TableEntry {
    pub(crate) fn new(shared: &Arc<Shared>, full: &str) -> Self {
        Self { shared: Arc::clone(shared), full: full.to_owned(), left: false }
    }

    /// Leaves, unless there is a successor to go on with.
    pub(crate) fn leave(&mut self) -> Option<TaskEnd> {
        let successor = self.shared.kept.leave(&self.full);
        self.left = successor.is_none();
        successor
    }
}

impl Drop for TableEntry {
    fn drop(&mut self) {
        while !self.left {
            // No task is left that could serve a successor.
            drop(self.leave());
        }
    }
}
