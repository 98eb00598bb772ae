use crate::Snapshot;
use crate::file::LocalFile;
use std::sync::Arc;
use std::time::Duration;

/// Sources of a value until the servers have answered.
pub(crate) struct Fallback<T> {
    pub(crate) default: Option<Arc<Snapshot<T>>>,
    pub(crate) file: Option<LocalFile>,
    /// How long to wait for the servers first.
    pub(crate) after: Duration,
}
