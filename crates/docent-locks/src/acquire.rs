//! Ways in which an owner gets a hold of a line. The locks differ only in their lines.

use crate::error::after_wait;
use crate::owner::{Access, LockHold, OtherSide};
use crate::shared_mutex::Cohort;
use crate::{AcquireError, NotAcquired, Owner, own_hold};
use docent_core::recipe::{self, Hold, InOperation, Line, Ticket};
use docent_core::{Client, ConnectionState, ConnectionStatus, Error, Lost, Participant, Released, planted};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use std::future::Future;
use std::ops::Deref;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::{Instant, timeout};

/// One side of a lock that is to be acquired.
#[derive(Clone)]
pub(crate) struct LockSide {
    pub(crate) line: Line,
    other: Option<OtherSide>,
    cohort: Option<Arc<Cohort>>,
}

impl LockSide {
    /// Creates the side of a mutex whose tickets are shared by the tasks of `cohort`.
    pub(crate) fn shared_in(cohort: &Arc<Cohort>, line: &Line) -> Self {
        Self { line: line.clone(), other: None, cohort: Some(Arc::clone(cohort)) }
    }

    /// Takes a ticket and waits for its turn, or waits for a turn with a shared ticket. Logs a wait for a
    /// lock that this client itself holds.
    fn wait(&self, progress: Progress) -> BoxFuture<'static, Result<LockHold, AcquireError>> {
        let line = self.line.clone();
        match &self.cohort {
            None => async move {
                // Pinned first, because a future that is moved into another future takes up space in both.
                let turn = pin!(wait_in(&line, &progress));
                Ok(own_hold::logged(&line, None, turn).await?.into())
            }
            .boxed(),
            Some(cohort) => Arc::clone(cohort).wait(line, progress).boxed(),
        }
    }

    /// Acquires as [`wait`](Self::wait) does, but fails if the lock is not free.
    fn attempt(&self, progress: Progress) -> BoxFuture<'static, Result<LockHold, AcquireError>> {
        let line = self.line.clone();
        match &self.cohort {
            None => async move { Ok(try_line(line, progress).await?.into()) }.boxed(),
            Some(cohort) => Arc::clone(cohort).attempt(line, progress).boxed(),
        }
    }

    /// Creates the readers' side. An owner that already writes reads in its own place.
    pub(crate) fn shared(readers: &Line, writers: &Line) -> Self {
        Self { line: readers.clone(), other: Some(OtherSide::Admits(writers.key())), cohort: None }
    }

    /// Creates the writers' side. An owner that already reads would wait for itself.
    pub(crate) fn exclusive(writers: &Line, readers: &Line) -> Self {
        Self { line: writers.clone(), other: Some(OtherSide::Deadlocks(readers.key())), cohort: None }
    }
}

impl From<Line> for LockSide {
    fn from(line: Line) -> Self {
        Self { line, other: None, cohort: None }
    }
}

/// Returns another share in a hold, unless the hold is lost.
pub(crate) fn reentered<H: Deref<Target = Hold>>(hold: H) -> Result<H, Lost> {
    if planted!(ReentryNotBoundToGeneration) {
        return Ok(hold);
    }
    // A share in a lost hold is worthless: another client may have the lock (decision 2).
    hold.check()?;
    Ok(hold)
}

/// Bounds an attempt that does not wait by the operation timeout. If the attempt has been refused when the
/// timeout expires, the refusal is the result, even if the holder is still being looked up.
pub(crate) fn in_time<'a, T: 'a>(
    line: &'a Line,
    progress: &'a Progress,
    attempt: impl Future<Output = Result<T, AcquireError>> + Send + 'a,
) -> impl Future<Output = Result<T, AcquireError>> + Send + 'a {
    // Boxed first, for the same reason as in `wait`.
    let attempt = Box::pin(attempt);
    async move {
        let done = recipe::in_time(line.client(), "acquire", line.path(), attempt).await;
        match (done, progress.take_refusal()) {
            (Err(AcquireError::Core(_)), Some(not_acquired)) => {
                Err(AcquireError::Busy(Box::new(not_acquired)))
            }
            (done, _) => done.in_operation("acquire"),
        }
    }
}

/// Waits out a transient error, and returns any other error.
pub(crate) async fn wait_out(line: &Line, error: AcquireError) -> Result<(), AcquireError> {
    match error {
        AcquireError::Core(error) => Ok(line.wait_out(error).await?),
        other => Err(other),
    }
}

/// Returns the hold of `owner` on `side`: re-entered, joined or newly acquired. Without an owner no other
/// call can join, so the acquire is not shared. This avoids a cost: a shared future wakes its own task at its
/// end, for which tokio wakes another thread.
pub(crate) async fn enter(
    owner: Option<Owner>,
    side: LockSide,
    progress: Progress,
) -> Result<LockHold, AcquireError> {
    match owner {
        None => side.wait(progress).await,
        Some(owner) => Box::pin(enter_as(owner, side, progress)).await,
    }
}

async fn enter_as(owner: Owner, side: LockSide, progress: Progress) -> Result<LockHold, AcquireError> {
    let LockSide { line, other, .. } = &side;
    let key = line.key();
    let acquire = |writer: Option<LockHold>| match writer {
        None => side.wait(progress.clone()),
        Some(writer) => enter_beside_writer(writer, line.clone(), true),
    };
    // Waits after the failure of another call are boxed, because they are rare.
    loop {
        let (acquiring, joined) = match owner.enter(&key, other.as_ref(), acquire)? {
            Access::Held(hold) => return Ok(reentered(hold)?),
            Access::Joined(acquiring) => (acquiring, true),
            Access::Started(acquiring) => (acquiring, false),
            Access::After(acquiring) => match acquiring.await {
                // The attempt may have been one that does not wait.
                Err(error) => {
                    Box::pin(after_failed_call(line, error)).await?;
                    continue;
                }
                // The writer's hold is kept until there is a hold beside it.
                Ok(_writer) => return Box::pin(enter_as(owner, side.clone(), progress.clone())).await,
            },
        };
        match acquiring.await {
            // The joined attempt may have been one that does not wait.
            Err(error) if joined => Box::pin(after_failed_call(line, error)).await?,
            result => return result,
        }
    }
}

/// Waits after the failure of another call's attempt, which may have been one that waits neither for its turn
/// nor for servers. Returns any error that waiting cannot fix.
async fn after_failed_call(line: &Line, error: AcquireError) -> Result<(), AcquireError> {
    match error {
        AcquireError::Busy(_) => Ok(()),
        error => wait_out(line, error).await,
    }
}

/// Takes a reader's node in the place of `writer`. If `waits`, waits out an outage of the servers.
fn enter_beside_writer(
    writer: LockHold,
    readers: Line,
    waits: bool,
) -> BoxFuture<'static, Result<LockHold, AcquireError>> {
    async move {
        loop {
            writer.check()?;
            match writer.beside(&readers).await {
                Ok(hold) => return Ok(hold.into()),
                Err(error) if waits => readers.wait_out(error).await?,
                Err(error) => return Err(error.into()),
            }
        }
    }
    .boxed()
}

/// Acquires as [`enter`] does, if that is possible without waiting.
pub(crate) async fn try_enter(
    owner: Option<Owner>,
    side: LockSide,
    progress: Progress,
) -> Result<LockHold, AcquireError> {
    let Some(owner) = owner else { return side.attempt(progress).await };
    let LockSide { line, other, .. } = &side;
    let acquire = |writer: Option<LockHold>| match writer {
        None => side.attempt(progress),
        Some(writer) => enter_beside_writer(writer, line.clone(), false),
    };
    match owner.enter(&line.key(), other.as_ref(), acquire)? {
        Access::Held(hold) => Ok(reentered(hold)?),
        // The owner itself is waiting for the lock, so the lock is not free.
        Access::Joined(_) | Access::After(_) => Err(AcquireError::busy(line.path())),
        Access::Started(acquiring) => acquiring.await,
    }
}

/// Bounds an acquire of `target`, which records its `progress`, by `timeout`. In the last part of the timeout
/// the client asks the servers who holds the lock. An acquire that succeeds earlier therefore costs no extra
/// request.
pub(crate) fn with_timeout<T>(
    timeout: Duration,
    target: impl Into<Target>,
    progress: Progress,
    acquire: impl Future<Output = Result<T, AcquireError>> + Send,
) -> impl Future<Output = Result<T, AcquireError>> + Send {
    let timeout = if planted!(TimeoutDoubled) { timeout * 2 } else { timeout };
    // Boxed first, for the same reason as in `wait`.
    let mut acquire = Box::pin(acquire);
    let (target, window) = (Box::new(target.into()), window(timeout));
    async move {
        // Both parts share one deadline, so a pause of the process between them does not extend it.
        let end = recipe::after(Instant::now(), timeout);
        if let Ok(done) = tokio::time::timeout_at(end - window, &mut acquire).await {
            return done;
        }
        match tokio::time::timeout_at(end, with_lookup(acquire, Box::pin(target.look_up_holder(&progress))))
            .await
        {
            Ok(done) => done,
            Err(_) => Err(AcquireError::TimedOut(Box::new(target.not_acquired(&progress, timeout, window)))),
        }
    }
}

/// Runs `lookup` beside `acquire`, and returns the result of `acquire`.
async fn with_lookup<T>(
    mut acquire: impl Future<Output = T> + Unpin,
    lookup: impl Future<Output = ()> + Unpin,
) -> T {
    tokio::select! {
        biased;
        done = &mut acquire => return done,
        () = lookup => {}
    }
    acquire.await
}

/// Takes a ticket of a line and waits for its turn. Takes another ticket if the ticket is deleted while
/// waiting.
pub(crate) async fn wait_in(line: &Line, progress: &Progress) -> Result<Hold, AcquireError> {
    progress.entered(line);
    Ok(line.acquire_notifying(None, |ticket| progress.took(ticket)).await?)
}

/// Takes a ticket only if its turn would come immediately; never waits for other contenders.
pub(crate) async fn try_line(line: Line, progress: Progress) -> Result<Hold, AcquireError> {
    in_time(&line, &progress, try_tickets(&line, &progress)).await
}

async fn try_tickets(line: &Line, progress: &Progress) -> Result<Hold, AcquireError> {
    loop {
        let ahead = line.ahead(None).await?;
        if !ahead.is_empty() {
            let not_acquired = NotAcquired { ahead: ahead.count(), ..NotAcquired::at(line.path()) };
            return Err(progress.refuse(not_acquired, line.client(), line.holder(&ahead)).await);
        }
        match line.take_ticket(None).await?.try_now().await {
            Ok(Some(hold)) => return Ok(hold),
            // Another contender was faster. This ticket is being deleted, so the holder is not looked up.
            Ok(None) => return Err(AcquireError::busy(line.path())),
            Err(error) => {
                if let Some(error) = after_wait(error) {
                    return Err(error);
                }
            }
        }
    }
}

/// Gives up a share in a hold. The last share waits until the node is deleted.
pub(crate) async fn release(hold: Arc<Hold>) -> Result<Released, Error> {
    let still_held = hold.check_for("release");
    match Arc::into_inner(hold) {
        Some(hold) => hold.release().await,
        None => still_held.map(|()| Released::Done),
    }
}

// Progress of an acquire, for the error with which it may end.

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
fn window(timeout: Duration) -> Duration {
    (timeout / 4).min(Duration::from_secs(1))
}
