use crate::desired::Side;
use crate::operation::Shared;
use std::sync::Arc;

/// Entry of a task in the table, which it leaves when the task ends, also by a panic.
pub(crate) struct Entered {
    shared: Arc<Shared>,
    full: String,
    left: bool,
}

impl Entered {
    pub(crate) fn new(shared: &Arc<Shared>, full: &str) -> Self {
        Self { shared: Arc::clone(shared), full: full.to_owned(), left: false }
    }

    /// Leaves, unless there is an heir to go on with.
    pub(crate) fn leave(&mut self) -> Option<Side> {
        let heir = self.shared.kept.leave(&self.full);
        self.left = heir.is_none();
        heir
    }
}

impl Drop for Entered {
    fn drop(&mut self) {
        while !self.left {
            // No task is left that could serve an heir.
            drop(self.leave());
        }
    }
}
