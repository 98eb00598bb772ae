//! Ways of an owner to a hold of a line. The locks differ in their lines only.

use crate::error::after_wait;
use crate::lock_hold::LockHold;
use crate::owner::{Access, OtherSide};
use crate::progress::{Progress, Target, window};
use crate::shared_mutex::Cohort;
use crate::{AcquireError, NotAcquired, Owner};
use docent_core::recipe::{self, Hold, Line};
use docent_core::{Error, Lost, planted};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use std::future::Future;
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// Line to acquire, or one side of it.
#[derive(Clone)]
pub(crate) struct LockSide {
    line: Line,
    other: Option<OtherSide>,
    cohort: Option<Arc<Cohort>>,
}

impl LockSide {
    /// The line of a mutex, whose tickets the tasks of `cohort` share.
    pub(crate) fn shared_in(cohort: &Arc<Cohort>, line: &Line) -> Self {
        Self { line: line.clone(), other: None, cohort: Some(Arc::clone(cohort)) }
    }

    /// Takes a ticket and waits for its turn, or waits for a turn with one that is shared.
    fn wait(&self, progress: Progress) -> BoxFuture<'static, Result<LockHold, AcquireError>> {
        let line = self.line.clone();
        match &self.cohort {
            None => async move { Ok(wait(line, progress).await?.into()) }.boxed(),
            Some(cohort) => Arc::clone(cohort).wait(line, progress).boxed(),
        }
    }

    /// As [`wait`](Self::wait), if nobody is to be waited for.
    fn attempt(&self, progress: Progress) -> BoxFuture<'static, Result<LockHold, AcquireError>> {
        let line = self.line.clone();
        match &self.cohort {
            None => async move { Ok(try_line(line, progress).await?.into()) }.boxed(),
            Some(cohort) => Arc::clone(cohort).attempt(line, progress).boxed(),
        }
    }

    /// The side of the readers: a writer reads in its own place.
    pub(crate) fn shared(readers: &Line, writers: &Line) -> Self {
        Self { line: readers.clone(), other: Some(OtherSide::Admits(writers.key())), cohort: None }
    }

    /// The side of the writers: a reader would wait for itself.
    pub(crate) fn exclusive(writers: &Line, readers: &Line) -> Self {
        Self { line: writers.clone(), other: Some(OtherSide::Deadlocks(readers.key())), cohort: None }
    }
}

impl From<Line> for LockSide {
    fn from(line: Line) -> Self {
        Self { line, other: None, cohort: None }
    }
}

/// One more share in a hold, unless that is lost.
pub(crate) fn reentered<H: Deref<Target = Hold>>(hold: H) -> Result<H, Lost> {
    if planted!(ReentryNotBoundToGeneration) {
        return Ok(hold);
    }
    // A share in a lost hold is worth nothing: somebody else may have the lock (decision 2).
    hold.check()?;
    Ok(hold)
}

/// Gives an attempt that waits for nobody the operation timeout. A refusal that is known by then is the
/// result, also while it is still asked who holds it.
pub(crate) fn in_time<'a, T: 'a>(
    line: &'a Line,
    progress: &'a Progress,
    attempt: impl Future<Output = Result<T, AcquireError>> + Send + 'a,
) -> impl Future<Output = Result<T, AcquireError>> + Send + 'a {
    // Boxed before it is moved on: a future that is handed from one to the next has room in both.
    let attempt = Box::pin(attempt);
    async move {
        let done = recipe::in_time(line.client(), "acquire", line.path(), attempt).await;
        match (done, progress.take_refusal()) {
            (Err(AcquireError::Core(_)), Some(missed)) => Err(AcquireError::Busy(Box::new(missed))),
            (done, _) => done,
        }
    }
}

/// Waits out what passes by itself, and returns any other error.
pub(crate) async fn wait_out(line: &Line, error: AcquireError) -> Result<(), AcquireError> {
    match error {
        AcquireError::Core(error) => Ok(line.wait_out(error).await?),
        other => Err(other),
    }
}

/// The hold of `owner` on `side`, once it has it: re-entered, joined or acquired. Without an owner nobody can
/// join, so that the acquire is not shared: a future that several may wait for wakes its own task at its end,
/// for which tokio wakes another thread.
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
        Some(writer) => read_beside(writer, line.clone(), true),
    };
    // Waits after the failure of another call are on the heap, because they are rare.
    loop {
        let (acquiring, joined) = match owner.enter(&key, other.as_ref(), acquire)? {
            Access::Held(hold) => return Ok(reentered(hold)?),
            Access::Joined(acquiring) => (acquiring, true),
            Access::Started(acquiring) => (acquiring, false),
            Access::After(acquiring) => match acquiring.await {
                // That attempt was one that does not wait.
                Err(error) => {
                    Box::pin(after_another(line, error)).await?;
                    continue;
                }
                // It is held until there is a hold beside it.
                Ok(_writer) => return Box::pin(enter_as(owner, side.clone(), progress.clone())).await,
            },
        };
        match acquiring.await {
            // The joined attempt was one that does not wait.
            Err(error) if joined => Box::pin(after_another(line, error)).await?,
            result => return result,
        }
    }
}

/// Waits after the failure of an attempt that was another call's, and may have been one that neither waits
/// for its turn nor for servers. Returns any error that waiting does not help against.
async fn after_another(line: &Line, error: AcquireError) -> Result<(), AcquireError> {
    match error {
        AcquireError::Busy(_) => Ok(()),
        error => wait_out(line, error).await,
    }
}

/// A reader in the place of `writer`; through an outage of the servers if it `waits`.
fn read_beside(
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

/// As [`enter`], if that is possible without waiting for others.
pub(crate) async fn try_enter(
    owner: Option<Owner>,
    side: LockSide,
    progress: Progress,
) -> Result<LockHold, AcquireError> {
    let Some(owner) = owner else { return side.attempt(progress).await };
    let LockSide { line, other, .. } = &side;
    let acquire = |writer: Option<LockHold>| match writer {
        None => side.attempt(progress),
        Some(writer) => read_beside(writer, line.clone(), false),
    };
    match owner.enter(&line.key(), other.as_ref(), acquire)? {
        Access::Held(hold) => Ok(reentered(hold)?),
        // The owner itself is waiting for it, so it is not free.
        Access::Joined(_) | Access::After(_) => Err(AcquireError::busy(line.path())),
        Access::Started(acquiring) => acquiring.await,
    }
}

/// Gives an acquire of `target`, which records its `progress`, at most `timeout`. In the last part of it the
/// servers are asked who is in the way: so an acquire that succeeds before that costs no request more.
pub(crate) fn with_timeout<T>(
    timeout: Duration,
    target: impl Into<Target>,
    progress: Progress,
    acquire: impl Future<Output = Result<T, AcquireError>> + Send,
) -> impl Future<Output = Result<T, AcquireError>> + Send {
    let timeout = if planted!(TimeoutDoubled) { timeout * 2 } else { timeout };
    // As in `in_time`.
    let mut acquire = Box::pin(acquire);
    let (target, window) = (Box::new(target.into()), window(timeout));
    async move {
        // Both parts have one end, also in a process that is paused between them.
        let end = recipe::after(Instant::now(), timeout);
        if let Ok(done) = tokio::time::timeout_at(end - window, &mut acquire).await {
            return done;
        }
        match tokio::time::timeout_at(end, beside(acquire, Box::pin(target.look(&progress)))).await {
            Ok(done) => done,
            Err(_) => Err(AcquireError::TimedOut(Box::new(target.missed(&progress, timeout, window)))),
        }
    }
}

/// The result of `acquire`, which goes on beside `look`.
async fn beside<T>(
    mut acquire: impl Future<Output = T> + Unpin,
    look: impl Future<Output = ()> + Unpin,
) -> T {
    tokio::select! {
        biased;
        done = &mut acquire => return done,
        () = look => {}
    }
    acquire.await
}

/// Takes a ticket and waits for its turn; again, when the ticket is gone before that.
pub(crate) async fn wait(line: Line, progress: Progress) -> Result<Hold, AcquireError> {
    progress.entered(&line);
    Ok(line.acquire_telling(None, |ticket| progress.took(ticket)).await?)
}

/// Takes a ticket only if it would not have to wait, and waits for nobody.
pub(crate) async fn try_line(line: Line, progress: Progress) -> Result<Hold, AcquireError> {
    in_time(&line, &progress, try_tickets(&line, &progress)).await
}

async fn try_tickets(line: &Line, progress: &Progress) -> Result<Hold, AcquireError> {
    loop {
        let ahead = line.ahead(None).await?;
        if !ahead.is_nobody() {
            let missed = NotAcquired { ahead: ahead.count(), ..NotAcquired::at(line.path()) };
            return Err(progress.refuse(missed, line.holder(&ahead)).await);
        }
        match line.take_ticket(None).await?.try_now().await {
            Ok(Some(hold)) => return Ok(hold),
            // Somebody was faster. Its place is given up: there is nothing to ask any more.
            Ok(None) => return Err(AcquireError::busy(line.path())),
            Err(error) => {
                if let Some(error) = after_wait(error) {
                    return Err(error);
                }
            }
        }
    }
}

/// Gives up a share in a hold; the last one waits until its node is deleted.
pub(crate) async fn release(hold: Arc<Hold>) -> Result<(), Error> {
    let still_held = hold.check_for("release");
    match Arc::into_inner(hold) {
        Some(hold) => hold.release().await,
        None => still_held,
    }
}
