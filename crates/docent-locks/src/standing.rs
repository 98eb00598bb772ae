//! Place in line of a call that may give up, for the error that it ends with.

use crate::NotAcquired;
use docent_core::recipe::{Line, Ticket};
use docent_core::{ConnectionState, Error, Participant};
use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

tokio::task_local! {
    static AMBIENT: Standing;
}

/// Place of an acquire, as far as it is known. The future that waits writes it, and the call that bounds that
/// reads it.
#[derive(Clone, Default)]
pub(crate) struct Standing(Arc<Mutex<Place>>);

#[derive(Default)]
struct Place {
    /// Line that was entered last.
    line: Option<Line>,
    /// Name of the ticket in it.
    ticket: Option<String>,
    ahead: Option<usize>,
    holder: Option<Participant>,
    /// Set once the servers answered when they were asked who is in the way.
    answered: bool,
}

impl Standing {
    /// That of the call which bounds this one, if one does.
    pub(crate) fn current() -> Option<Self> {
        AMBIENT.try_with(Self::clone).ok()
    }

    /// Runs `future` as one whose place this shows.
    pub(crate) fn within<F: Future>(&self, future: F) -> impl Future<Output = F::Output> + use<F> {
        AMBIENT.scope(self.clone(), future)
    }

    /// Calls `begin` as one whose place this shows.
    pub(crate) fn begin<T>(&self, begin: impl FnOnce() -> T) -> T {
        AMBIENT.sync_scope(self.clone(), begin)
    }

    /// Shows the ticket that `other` shows, too.
    pub(crate) fn share(&self, other: &Self) {
        let (ticket, ahead) = {
            let place = other.lock();
            (place.ticket.clone(), place.ahead)
        };
        let mut place = self.lock();
        // What the servers said of the same ticket since stays.
        if place.ticket != ticket {
            (place.ticket, place.ahead) = (ticket, ahead);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Place> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// It waits in `line` now, and has no ticket yet.
    pub(crate) fn entered(&self, line: &Line) {
        let mut place = self.lock();
        // Servers that answered about another line were reached, too.
        *place = Place { line: Some(line.clone()), answered: place.answered, ..Place::default() };
    }

    pub(crate) fn took(&self, ticket: &Ticket) {
        let name = ticket.path().rsplit('/').next().map(str::to_owned);
        let mut place = self.lock();
        (place.ticket, place.ahead) = (name, ticket.ahead());
    }
}

/// Lock that is waited for with a limit.
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
    pub(crate) async fn look(&self, standing: &Standing) {
        if let Err(error) = self.ask(standing).await
            && !error.is_retryable()
        {
            // A refusal is an answer.
            standing.lock().answered = true;
        }
    }

    async fn ask(&self, standing: &Standing) -> Result<(), Error> {
        let (line, ticket) = {
            let place = standing.lock();
            (place.line.clone().unwrap_or_else(|| self.line.clone()), place.ticket.clone())
        };
        let ahead = line.glance(ticket.as_deref()).await?;
        {
            let mut place = standing.lock();
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
        let mut place = standing.lock();
        if place.ticket == ticket {
            place.holder = holder;
        }
        Ok(())
    }

    /// The account of a call that was given `timeout`, and `window` to ask who is in the way.
    pub(crate) fn missed(&self, standing: &Standing, timeout: Duration, window: Duration) -> NotAcquired {
        let mut place = standing.lock();
        let line = place.line.take().unwrap_or_else(|| self.line.clone());
        let path = self.semaphore.as_ref().map_or(line.path(), |(path, _)| path);
        let is_connected = line.client().state().current() == ConnectionState::Connected;
        NotAcquired {
            path: path.to_owned(),
            timeout: Some(timeout),
            ahead: place.ahead,
            holder: place.holder.take(),
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
