use crate::session::LinkError;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Reason why there is no link, for the errors of operations that wait for one.
#[derive(Debug, Clone, Default)]
pub(crate) struct LastError(Arc<Mutex<NoLink>>);

#[derive(Debug, Default)]
struct NoLink {
    error: Option<Arc<LinkError>>,
    /// The step that the dialer currently waits for.
    attempt: Option<Arc<LinkError>>,
}

impl LastError {
    fn lock(&self) -> MutexGuard<'_, NoLink> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn set(&self, error: LinkError) {
        self.lock().error = Some(Arc::new(error));
    }

    /// Records the step that the dialer waits for from now on.
    pub(crate) fn wait_for(&self, attempt: LinkError) {
        self.lock().attempt = Some(Arc::new(attempt));
    }

    /// Records that there is a link.
    pub(crate) fn clear(&self) {
        *self.lock() = NoLink::default();
    }

    pub(crate) fn get(&self) -> Option<Arc<LinkError>> {
        self.lock().error.clone()
    }

    /// Returns the last error or, if there was none yet, the step that the dialer waits for.
    pub(crate) fn current(&self) -> Option<Arc<LinkError>> {
        let no_link = self.lock();
        no_link.error.clone().or_else(|| no_link.attempt.clone())
    }
}
