//! Refusals of calls that do not wait, and the holder whom they name.

use crate::{AcquireError, NotAcquired};
use docent_core::{Error, Participant};
use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::timeout;

/// Longest time for which it is asked who holds what is not free.
const PATIENCE: Duration = Duration::from_secs(1);

tokio::task_local! {
    static AMBIENT: Refusal;
}

/// Refusal of an attempt, once it is known. The attempt writes it, and the call that bounds that reads it.
#[derive(Clone, Default)]
pub(crate) struct Refusal(Arc<Mutex<Option<NotAcquired>>>);

impl Refusal {
    /// That of the call around this one, if there is one; else a new one.
    pub(crate) fn current() -> Self {
        AMBIENT.try_with(Self::clone).unwrap_or_default()
    }

    /// Runs `attempt` as one whose refusal this shows.
    pub(crate) fn within<F: Future>(&self, attempt: F) -> impl Future<Output = F::Output> + use<F> {
        AMBIENT.scope(self.clone(), attempt)
    }

    fn lock(&self) -> MutexGuard<'_, Option<NotAcquired>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn take(&self) -> Option<NotAcquired> {
        self.lock().take()
    }
}

/// The error of an attempt that is refused, with the holder, if `find` tells it within a second.
pub(crate) async fn refuse(
    missed: NotAcquired,
    find: impl Future<Output = Result<Option<Participant>, Error>>,
) -> AcquireError {
    // From here on the call is refused, whatever becomes of the question.
    let _ = AMBIENT.try_with(|refusal| *refusal.lock() = Some(missed.clone()));
    let holder = timeout(PATIENCE, find).await.ok().and_then(Result::ok).flatten();
    AcquireError::Busy(Box::new(NotAcquired { holder, ..missed }))
}
