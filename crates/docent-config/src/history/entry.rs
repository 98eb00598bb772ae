use crate::{Rejection, Revision};
use std::fmt;

/// An earlier value.
#[derive(Clone)]
#[non_exhaustive]
pub struct HistoryEntry<T> {
    /// Revision of the value.
    pub revision: Revision,
    /// Value, or why it cannot be decoded.
    pub value: Result<T, Rejection>,
}

// The value may hold secrets, so `Debug` does not print it.
impl<T> fmt::Debug for HistoryEntry<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HistoryEntry")
            .field("revision", &self.revision)
            .field("refusal", &self.value.as_ref().err())
            .finish_non_exhaustive()
    }
}
