use super::CleanupContext;
use crate::setup::Setup;
use futures_util::future::BoxFuture;
use std::sync::Arc;

/// Client whose nodes the `CleanupWorker` deletes.
pub(crate) trait Host: Send + Sync {
    fn setup(&self) -> &Setup;

    /// The first session after the one with this number; `None` once the client closes.
    fn next_session(&self, number: u64) -> BoxFuture<'_, Option<Arc<CleanupContext>>>;
}
