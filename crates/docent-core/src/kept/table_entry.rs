use super::TaskChannels;
use crate::operation::Shared;
use std::sync::Arc;

/// Entry of a task in the table. The task leaves the table when it ends, even by a panic.
pub(crate) struct TableEntry {
    shared: Arc<Shared>,
    full: String,
    left: bool,
}

impl TableEntry {
    pub(crate) fn new(shared: &Arc<Shared>, full: &str) -> Self {
        Self { shared: Arc::clone(shared), full: full.to_owned(), left: false }
    }

    /// Leaves the table, unless there is a successor, which is returned.
    pub(crate) fn leave(&mut self) -> Option<TaskChannels> {
        let successor = self.shared.kept.leave(&self.full);
        self.left = successor.is_none();
        successor
    }
}

impl Drop for TableEntry {
    fn drop(&mut self) {
        while !self.left {
            // No task remains that could serve a successor.
            drop(self.leave());
        }
    }
}
