use crate::Snapshot;
use crate::file::LocalFile;
use std::sync::Arc;
use std::time::Duration;

/// Sources of a value while the servers have told nothing.
pub(crate) struct Fallback<T> {
    pub(crate) default: Option<Arc<Snapshot<T>>>,
    pub(crate) file: Option<LocalFile>,
    /// How long the servers are waited for first.
    pub(crate) after: Duration,
}
