use super::local_line::{Left, LocalLine, Over, Step};
use crate::acquire::{in_time, try_line, wait};
use crate::progress::Progress;
use crate::{AcquireError, NotAcquired};
use docent_core::planted;
use docent_core::recipe::{Hold, Line, Relay, TurnOver, after};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use tokio::runtime::{self, Handle};
use tokio::time::Instant;
use tracing::{Instrument, Span};

type Acquiring = BoxFuture<'static, Result<Hold, AcquireError>>;

/// Draw of a ticket, by one task after the other.
struct Draw {
    acquiring: Acquiring,
    /// The runtime that its timers are of: where that is not driven any more they never fire.
    runtime: Option<runtime::Id>,
    /// Shows its ticket to each of them.
    progress: Progress,
}

/// Tasks of one process that share tickets for one mutex (decision 19). Source: "Lock Cohorting" by Dice,
/// Marathe and Shavit, with the process for a cohort, and the line at the servers for the lock between them.
pub(crate) struct Cohort {
    /// Times that a ticket is passed on at most.
    limit: u32,
    /// Time for which it is, at most.
    time: Duration,
    line: Mutex<LocalLine<Relay, Hold, Draw>>,
}

impl Cohort {
    pub(super) fn new(limit: u32, time: Duration) -> Self {
        Self { limit, time, line: Mutex::default() }
    }

    /// Under this lock nothing is called that others wrote, and nothing dropped that makes a request.
    fn lock(&self) -> MutexGuard<'_, LocalLine<Relay, Hold, Draw>> {
        self.line.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for a turn. Its place among the tasks is that of the first poll.
    pub(crate) fn wait(self: &Arc<Self>, line: Line, progress: Progress) -> Acquiring {
        let (cohort, span) = (Arc::clone(self), line.acquire_span());
        async move {
            progress.entered(&line);
            let since = Instant::now();
            let id = cohort.lock().arrive(since);
            Waiting { cohort, line, id, since, progress, tries: false, done: false }.await
        }
        .instrument(span)
        .boxed()
    }

    /// Has a turn if no other task is here, and nobody else holds the lock.
    pub(crate) fn attempt(self: &Arc<Self>, line: Line, progress: Progress) -> Acquiring {
        let cohort = Arc::clone(self);
        async move {
            let since = Instant::now();
            let first = cohort.lock().arrive_first(since);
            match first {
                Some(id) => Waiting { cohort, line, id, since, progress, tries: true, done: false }.await,
                None => {
                    let ahead = Some(cohort.lock().len());
                    let missed = NotAcquired { ahead, ..NotAcquired::at(line.path()) };
                    in_time(&line, &progress, async { Err(progress.refuse(missed, line.first()).await) })
                        .await
                }
            }
        }
        .boxed()
    }

    /// The first turn with the ticket that the task `id` drew.
    fn begin(self: &Arc<Self>, id: u64, hold: Hold) -> Hold {
        let cohort = Arc::downgrade(self);
        let relay = Relay::new(hold, move || {
            if let Some(cohort) = cohort.upgrade() {
                cohort.lost();
            }
        });
        let turn = relay.turn(Duration::ZERO, Arc::clone(self) as Arc<dyn TurnOver>);
        let until = after(Instant::now(), self.time);
        self.lock().drawn(id, relay.clone(), until);
        self.look(&relay);
        turn
    }

    /// It may have been lost before it was here to be found.
    fn look(&self, relay: &Relay) {
        if relay.is_lost() {
            self.lost();
        }
    }

    fn lost(&self) {
        if planted!(TurnAfterLoss) {
            return;
        }
        let lost = self.lock().lost(Relay::is_lost);
        if let Some((_relay, next)) = lost {
            wake(next);
        }
    }
}

impl TurnOver for Cohort {
    fn over(self: Arc<Self>, relay: &Relay) -> bool {
        let limit = if planted!(TurnsWithoutLimit) { u32::MAX } else { self.limit };
        let over = self.lock().over(|held| held.is(relay), limit, Instant::now());
        let Over::Pass(waited) = over else { return false };
        // The clock is looked at, and a turn made, without the lock: both may tell of a loss.
        if !relay.may_go_on() {
            let given_up = self.lock().give_up();
            drop(given_up);
            return false;
        }
        let turn = relay.turn(waited, Arc::clone(&self) as Arc<dyn TurnOver>);
        let passed = self.lock().pass(turn);
        match passed {
            Ok(next) => wake(next),
            Err((turn, _relay)) => {
                turn.forgo();
                return false;
            }
        }
        self.look(relay);
        true
    }

    fn given_up(self: Arc<Self>) {
        // Those who wait draw a ticket after the delete of the old one.
        let next = self.lock().next();
        wake(next);
    }
}

fn wake(waker: Option<Waker>) {
    waker.into_iter().for_each(Waker::wake);
}

fn runtime_id() -> Option<runtime::Id> {
    Handle::try_current().ok().map(|runtime| runtime.id())
}

/// Wait of a task for its turn.
///
/// # On drop
/// The task leaves. A turn that it was given goes to the next one, and so does the draw of a ticket; a task
/// of another runtime draws anew.
struct Waiting {
    cohort: Arc<Cohort>,
    line: Line,
    id: u64,
    /// Time at which it came.
    since: Instant,
    /// Shows the ticket that it draws.
    progress: Progress,
    /// True when it waits for nobody.
    tries: bool,
    /// Set once it is in the line no more.
    done: bool,
}

impl Waiting {
    fn draw(&self) -> Draw {
        let (line, progress) = (self.line.clone(), Progress::recorded());
        let acquire = if self.tries { try_line } else { wait };
        Draw { acquiring: acquire(line, progress.clone()), runtime: runtime_id(), progress }
    }
}

impl Future for Waiting {
    type Output = Result<Hold, AcquireError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut draw = loop {
            let step = self.cohort.lock().poll(self.id, self.tries, cx.waker());
            match step {
                Step::Turn(turn) if turn.is_held() || planted!(TurnAfterLoss) => {
                    self.done = true;
                    Span::current().record("docent.fence", tracing::field::display(turn.turn_fence()));
                    return Poll::Ready(Ok(turn));
                }
                // It was lost before it was taken, as a ticket may be.
                Step::Turn(lost) => {
                    drop(lost);
                    self.cohort.lock().wait_on(self.id, self.since);
                }
                Step::Draw => break self.draw(),
                Step::Poll(draw) if draw.runtime == runtime_id() => break draw,
                // It was begun by a task of another runtime. Its place in the line is lost.
                Step::Poll(draw) => {
                    drop(draw);
                    break self.draw();
                }
                Step::Wait => return Poll::Pending,
            }
        };
        match draw.acquiring.as_mut().poll(cx) {
            Poll::Pending => {
                // It may be a draw that another task began.
                self.progress.share(&draw.progress);
                self.cohort.lock().put_back(draw);
                Poll::Pending
            }
            Poll::Ready(Ok(hold)) => {
                self.done = true;
                Poll::Ready(Ok(self.cohort.begin(self.id, hold)))
            }
            Poll::Ready(Err(error)) => {
                self.done = true;
                let next = self.cohort.lock().failed(self.id);
                wake(next);
                Poll::Ready(Err(error))
            }
        }
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        if self.done {
            return;
        }
        let Left { turn, draw, next } = self.cohort.lock().leave(self.id);
        drop(draw);
        wake(next);
        if planted!(TurnForgottenOnCancel) {
            turn.into_iter().for_each(std::mem::forget);
            return;
        }
        // Its end is the beginning of the next turn.
        drop(turn);
    }
}
