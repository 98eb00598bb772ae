use super::local_line::{LocalLine, Over, Step};
use super::loss::{Loss, LossWatch};
use super::turn::{Ticket, Turn};
use super::waiting::{Draw, Waiting};
use crate::acquire::in_time;
use crate::lock_hold::LockHold;
use crate::progress::Progress;
use crate::{AcquireError, NotAcquired};
use docent_core::planted;
use docent_core::recipe::{Hold, Line, after};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;
use std::time::Duration;
use tokio::time::Instant;
use tracing::Instrument;

type Tasks = LocalLine<LossWatch, Turn, Draw>;

/// Tasks of one process that share tickets for one mutex (decision 19). Source: "Lock Cohorting" by Dice,
/// Marathe and Shavit, with the process for a cohort, and the line at the servers for the lock between them.
pub(crate) struct Cohort {
    /// Times that a ticket is passed on at most.
    limit: u32,
    /// Time for which it is, at most.
    time: Duration,
    tasks: Mutex<Tasks>,
}

impl Cohort {
    pub(super) fn new(limit: u32, time: Duration) -> Self {
        Self { limit, time, tasks: Mutex::default() }
    }

    /// Under this lock nothing is called that others wrote, and nothing dropped that makes a request or has a
    /// token.
    pub(super) fn lock(&self) -> MutexGuard<'_, Tasks> {
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for a turn. Its place among the tasks is that of the first poll.
    pub(crate) async fn wait(
        self: Arc<Self>,
        line: Line,
        progress: Progress,
    ) -> Result<LockHold, AcquireError> {
        let span = line.acquire_span();
        async move {
            progress.entered(&line);
            let since = Instant::now();
            let id = self.lock().arrive(since);
            Ok(Waiting::new(self, line, id, since, progress, false).await?.into())
        }
        .instrument(span)
        .await
    }

    /// Has a turn if no other task is here, and nobody else holds the lock.
    pub(crate) async fn attempt(
        self: Arc<Self>,
        line: Line,
        progress: Progress,
    ) -> Result<LockHold, AcquireError> {
        let since = Instant::now();
        if let Some(id) = self.arrive_first(since) {
            return Ok(Waiting::new(self, line, id, since, progress, true).await?.into());
        }
        let ahead = Some(self.lock().len());
        let missed = NotAcquired { ahead, ..NotAcquired::at(line.path()) };
        in_time(&line, &progress, async { Err(progress.refuse(missed, line.first()).await) }).await
    }

    /// The first turn with the ticket that the task `id` drew, which holds by `hold`.
    pub(super) fn begin(self: &Arc<Self>, id: u64, hold: Hold) -> Turn {
        let watch = LossWatch::new(&hold, Arc::downgrade(self));
        let loss = Arc::clone(watch.loss());
        let ticket = Ticket { hold, loss: Arc::clone(&loss), turns: 0 };
        let turn = Turn::new(Arc::clone(self), ticket, Duration::ZERO);
        let until = after(Instant::now(), self.time);
        self.lock().drawn(id, watch, until);
        self.look(&loss);
        turn
    }

    /// A turn with `ticket` is over: the next one begins. Returns a ticket that is to be given up.
    pub(super) fn pass_on(self: &Arc<Self>, ticket: Ticket) -> Option<Ticket> {
        let limit = if planted!(TurnsWithoutLimit) { u32::MAX } else { self.limit };
        let over = self.lock().over(|watch| watch.is_of(&ticket.loss), limit, Instant::now());
        let Over::Pass(waited) = over else { return Some(ticket) };
        // The clock is looked at, and a turn made, without the lock: both may tell of a loss.
        if !ticket.hold.may_be_lent_again() {
            let watch = self.lock().give_up();
            drop(watch);
            return Some(ticket);
        }
        let loss = Arc::clone(&ticket.loss);
        let turn = Turn::new(Arc::clone(self), ticket, waited);
        let passed = self.lock().pass(turn);
        match passed {
            Ok(next) => wake(next),
            // Nobody waits any more: at the end of this turn the ticket is not the one that tasks share.
            Err((turn, _watch)) => return turn.into_ticket(),
        }
        self.look(&loss);
        None
    }

    /// A loss before a turn was known here has woken nobody.
    fn look(&self, loss: &Loss) {
        if loss.happened() {
            self.wake_next();
        }
    }

    pub(super) fn wake_next(&self) {
        let next = self.lock().next();
        wake(next);
    }

    /// The number of a task that comes, if nobody is here.
    fn arrive_first(&self, now: Instant) -> Option<u64> {
        self.after_losses(|tasks| tasks.arrive_first(now))
    }

    /// The next step of the task `id`.
    pub(super) fn step(&self, id: u64, tries: bool, waker: &Waker) -> Step<Turn, Draw> {
        self.after_losses(|tasks| tasks.poll(id, tries, waker))
    }

    /// The result of `act`, before which a lost ticket is forgotten: nobody waits for the end of its turn.
    fn after_losses<T>(&self, act: impl FnOnce(&mut Tasks) -> T) -> T {
        let mut tasks = self.lock();
        // Under one lock: a loss is seen here, or finds the waker that `act` leaves.
        let lost = tasks.lost(LossWatch::has_fired);
        let done = act(&mut tasks);
        drop(tasks);
        if let Some((_watch, next)) = lost {
            wake(next);
        }
        done
    }
}

pub(super) fn wake(waker: Option<Waker>) {
    waker.into_iter().for_each(Waker::wake);
}
