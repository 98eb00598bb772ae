//! Progress of an acquire, for the error that it ends with.

use crate::{AcquireError, NotAcquired};
use docent_core::recipe::{Line, Ticket};
use docent_core::{ConnectionState, Error, Participant};
use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::timeout;

/// Limit for finding out who holds the lock.
const PATIENCE: Duration = Duration::from_secs(1);

/// Progress of an acquire with a limit. The future that acquires writes it. The call that limits this future
/// reads it.
#[derive(Clone)]
pub(crate) struct Progress(Option<Arc<Mutex<Place>>>);

/// Place of an acquire, as far as it is known.
#[derive(Default)]
struct Place {
    /// Line that was entered last.
    line: Option<Line>,
    /// Name of the ticket in it.
    ticket: Option<String>,
    ahead: Option<usize>,
    holder: Option<Participant>,
    /// Set once a server answered the request for the contenders ahead.
    answered: bool,
    /// Set once the acquire is refused, which may be before the holder is known.
    refusal: Option<NotAcquired>,
}

impl Progress {
    /// For an acquire without a limit: nothing is recorded.
    pub(crate) fn unrecorded() -> Self {
        Self(None)
    }

    /// For an acquire that the caller limits.
    pub(crate) fn recorded() -> Self {
        Self(Some(Arc::default()))
    }

    fn lock(&self) -> Option<MutexGuard<'_, Place>> {
        self.0.as_ref().map(|place| place.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Records that the acquire is refused, and returns the error, with the holder if `find` returns it
    /// within a second.
    pub(crate) async fn refuse(
        &self,
        missed: NotAcquired,
        find: impl Future<Output = Result<Option<Participant>, Error>>,
    ) -> AcquireError {
        if let Some(mut place) = self.lock() {
            place.refusal = Some(missed.clone());
        }
        let holder = timeout(PATIENCE, find).await.ok().and_then(Result::ok).flatten();
        AcquireError::Busy(Box::new(NotAcquired { holder, ..missed }))
    }

    pub(crate) fn take_refusal(&self) -> Option<NotAcquired> {
        self.lock().and_then(|mut place| place.refusal.take())
    }

    /// Takes over the ticket of `other`.
    pub(crate) fn share(&self, other: &Self) {
        if self.0.is_none() {
            return;
        }
        let Some((ticket, ahead)) = other.lock().map(|place| (place.ticket.clone(), place.ahead)) else {
            return;
        };
        let Some(mut place) = self.lock() else { return };
        // What the servers said of the same ticket since stays.
        if place.ticket != ticket {
            (place.ticket, place.ahead) = (ticket, ahead);
        }
    }

    /// Records that the acquire waits in `line`, without a ticket so far.
    pub(crate) fn entered(&self, line: &Line) {
        let Some(mut place) = self.lock() else { return };
        // Servers that answered about another line were reached, too.
        *place = Place { line: Some(line.clone()), answered: place.answered, ..Place::default() };
    }

    pub(crate) fn took(&self, ticket: &Ticket) {
        let Some(mut place) = self.lock() else { return };
        let name = ticket.path().rsplit('/').next().map(str::to_owned);
        (place.ticket, place.ahead) = (name, ticket.ahead());
    }
}

/// Lock that an acquire with a limit waits for.
pub(crate) struct Target {
    line: Line,
    /// The path of a semaphore, and the line of those who have its permits.
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

    /// Asks who is in the way: a listing and a read, which calls of the client share that ask at the same
    /// time.
    pub(crate) async fn look(&self, progress: &Progress) {
        if let Err(error) = self.ask(progress).await
            && !error.is_retryable()
            && let Some(mut place) = progress.lock()
        {
            // A refusal is an answer.
            place.answered = true;
        }
    }

    async fn ask(&self, progress: &Progress) -> Result<(), Error> {
        let (line, ticket) =
            progress.lock().map_or((None, None), |place| (place.line.clone(), place.ticket.clone()));
        let line = line.unwrap_or_else(|| self.line.clone());
        let ahead = line.glance(ticket.as_deref()).await?;
        if let Some(mut place) = progress.lock() {
            place.answered = true;
            if place.ticket != ticket {
                // It waits elsewhere by now.
                return Ok(());
            }
            place.ahead = ahead.count().filter(|_| ticket.is_some()).or(place.ahead);
        }
        let holder = match &self.semaphore {
            Some((_, permits)) => permits.glance_holder(&permits.glance(None).await?).await?,
            None => line.glance_holder(&ahead).await?,
        };
        if let Some(mut place) = progress.lock().filter(|place| place.ticket == ticket) {
            place.holder = holder;
        }
        Ok(())
    }

    /// The account of a call that was given `timeout`, and `window` to ask who is in the way.
    pub(crate) fn missed(&self, progress: &Progress, timeout: Duration, window: Duration) -> NotAcquired {
        let place = progress.lock().map(|mut place| std::mem::take(&mut *place)).unwrap_or_default();
        let line = place.line.unwrap_or_else(|| self.line.clone());
        let path = self.semaphore.as_ref().map_or(line.path(), |(path, _)| path);
        let is_connected = line.client().state().current() == ConnectionState::Connected;
        NotAcquired {
            path: path.to_owned(),
            timeout: Some(timeout),
            ahead: place.ahead,
            holder: place.holder,
            // Less than this is no time to answer in.
            servers_reachable: place.answered || (is_connected && window < Duration::from_millis(250)),
            queued: place.ticket.is_some(),
        }
    }
}

/// The last part of `timeout`, in which it is asked who is in the way.
pub(crate) fn window(timeout: Duration) -> Duration {
    (timeout / 4).min(Duration::from_secs(1))
}
