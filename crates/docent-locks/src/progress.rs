//! Progress of an acquire, for the error with which it may end.

use crate::{AcquireError, NotAcquired};
use docent_core::recipe::{Line, Ticket};
use docent_core::{Client, ConnectionState, ConnectionStatus, Error, Participant};
use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::timeout;

/// Maximum time for finding out who holds the lock.
const PATIENCE: Duration = Duration::from_secs(1);

/// Progress of an acquire with a time limit. The acquiring future writes it, and the call that limits this
/// future reads it.
#[derive(Clone)]
pub(crate) struct Progress(Option<Arc<Mutex<AcquireState>>>);

/// Known state of an acquire.
#[derive(Default)]
struct AcquireState {
    /// Line that was entered last.
    line: Option<Line>,
    /// Name of the ticket in that line.
    ticket: Option<String>,
    ahead: Option<usize>,
    holder: Option<Participant>,
    /// Whether a server answered the request for the contenders ahead.
    answered: bool,
    /// Connection when the acquire began.
    begun: Option<ConnectionStatus>,
    /// Refusal of the acquire, which may be set before the holder is known.
    refusal: Option<NotAcquired>,
}

impl Progress {
    /// Creates a progress that records nothing, for an acquire without a limit.
    pub(crate) fn unrecorded() -> Self {
        Self(None)
    }

    /// Creates a progress that records, for an acquire that the caller limits.
    pub(crate) fn recorded() -> Self {
        Self(Some(Arc::default()))
    }

    fn lock(&self) -> Option<MutexGuard<'_, AcquireState>> {
        self.0.as_ref().map(|state| state.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Records that the acquire is refused, and returns the error. The error contains the holder if `find`
    /// returns it within a second.
    pub(crate) async fn refuse(
        &self,
        not_acquired: NotAcquired,
        client: &Client,
        find: impl Future<Output = Result<Option<Participant>, Error>>,
    ) -> AcquireError {
        if let Some(mut state) = self.lock() {
            state.refusal = Some(not_acquired.clone());
        }
        let holder = timeout(PATIENCE, find).await.ok().and_then(Result::ok).flatten();
        AcquireError::Busy(Box::new(not_acquired.with_holder(holder, client)))
    }

    pub(crate) fn take_refusal(&self) -> Option<NotAcquired> {
        self.lock().and_then(|mut state| state.refusal.take())
    }

    /// Adopts the ticket of `other`.
    pub(crate) fn share(&self, other: &Self) {
        if self.0.is_none() {
            return;
        }
        let Some((ticket, ahead)) = other.lock().map(|state| (state.ticket.clone(), state.ahead)) else {
            return;
        };
        let Some(mut state) = self.lock() else { return };
        // Keeps what the servers have reported about the same ticket since.
        if state.ticket != ticket {
            (state.ticket, state.ahead) = (ticket, ahead);
        }
    }

    /// Records that the acquire waits in `line`, without a ticket so far.
    pub(crate) fn entered(&self, line: &Line) {
        let Some(mut state) = self.lock() else { return };
        // Servers that answered a request about another line are reachable as well.
        let begun = state.begun.unwrap_or_else(|| line.client().state().current());
        *state = AcquireState {
            line: Some(line.clone()),
            answered: state.answered,
            begun: Some(begun),
            ..AcquireState::default()
        };
    }

    pub(crate) fn took(&self, ticket: &Ticket) {
        let Some(mut state) = self.lock() else { return };
        let name = ticket.path().rsplit('/').next().map(str::to_owned);
        (state.ticket, state.ahead) = (name, ticket.ahead());
    }
}

/// Lock that an acquire with a limit waits for.
pub(crate) struct Target {
    line: Line,
    /// Path of a semaphore, and the line of its permits.
    semaphore: Option<(String, Line)>,
}

impl From<Line> for Target {
    fn from(line: Line) -> Self {
        Self { line, semaphore: None }
    }
}

impl Target {
    pub(crate) fn semaphore(path: &str, turns: Line, permits: Line) -> Self {
        Self { line: turns, semaphore: Some((path.to_owned(), permits)) }
    }

    /// Asks the servers who holds the lock, with a listing and a read. Concurrent calls of the client share
    /// both requests.
    pub(crate) async fn look_up_holder(&self, progress: &Progress) {
        if let Err(error) = self.request_holder(progress).await
            && !error.is_retryable()
            && let Some(mut state) = progress.lock()
        {
            // A refusal is an answer as well.
            state.answered = true;
        }
    }

    async fn request_holder(&self, progress: &Progress) -> Result<(), Error> {
        let (line, ticket) =
            progress.lock().map_or((None, None), |state| (state.line.clone(), state.ticket.clone()));
        let line = line.unwrap_or_else(|| self.line.clone());
        let ahead = line.ahead_coalesced(ticket.as_deref()).await?;
        if let Some(mut state) = progress.lock() {
            state.answered = true;
            if state.ticket != ticket {
                // The acquire now waits with another ticket.
                return Ok(());
            }
            state.ahead = ahead.count().filter(|_| ticket.is_some()).or(state.ahead);
        }
        let holder = match &self.semaphore {
            Some((_, permits)) => permits.holder_coalesced(&permits.ahead_coalesced(None).await?).await?,
            None => line.holder_coalesced(&ahead).await?,
        };
        if let Some(mut state) = progress.lock().filter(|state| state.ticket == ticket) {
            state.holder = holder;
        }
        Ok(())
    }

    /// Creates the account of a call with `timeout`, of which `window` was available for asking who holds the
    /// lock.
    pub(crate) fn not_acquired(
        &self,
        progress: &Progress,
        timeout: Duration,
        window: Duration,
    ) -> NotAcquired {
        let state = progress.lock().map(|mut state| std::mem::take(&mut *state)).unwrap_or_default();
        let line = state.line.unwrap_or_else(|| self.line.clone());
        let path = self.semaphore.as_ref().map_or(line.path(), |(path, _)| path);
        let current = line.client().state().current();
        let is_connected = current == ConnectionState::Connected;
        let not_acquired = NotAcquired {
            timeout: Some(timeout),
            ahead: state.ahead,
            // A window shorter than this does not leave the servers enough time to answer.
            servers_reachable: state.answered || (is_connected && window < Duration::from_millis(250)),
            queued: state.ticket.is_some(),
            link_lost: state.begun.is_some_and(|begun| is_later(begun, current)),
            ..NotAcquired::at(path)
        };
        not_acquired.with_holder(state.holder, line.client())
    }
}

/// Returns whether the client lost a link or its session after `begun`.
fn is_later(begun: ConnectionStatus, current: ConnectionStatus) -> bool {
    (begun.generation, begun.suspensions) != (current.generation, current.suspensions)
}

/// Returns the last part of `timeout`, in which the client asks who holds the lock.
pub(crate) fn window(timeout: Duration) -> Duration {
    (timeout / 4).min(Duration::from_secs(1))
}
