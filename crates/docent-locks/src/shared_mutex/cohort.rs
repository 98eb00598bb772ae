use super::local_line::{AfterTurn, LocalLine};
use super::loss::{Loss, LossWatch};
use super::turn::{Ticket, Turn};
use super::waiting::{Draw, Waiting};
use crate::acquire::{Progress, in_time};
use crate::owner::LockHold;
use crate::{AcquireError, NotAcquired, own_hold};
use docent_core::planted;
use docent_core::recipe::{Hold, Line, after};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;
use std::time::Duration;
use tokio::time::Instant;
use tracing::Instrument;

type Tasks = LocalLine<LossWatch, Turn, Draw>;

/// Tasks of one process that share tickets for one mutex (decision 19). Source: "Lock Cohorting" by Dice,
/// Marathe and Shavit. The process is the cohort, and the line at the servers is the lock between cohorts.
pub(crate) struct Cohort {
    /// Maximum number of times that a ticket is passed on.
    limit: u32,
    /// Maximum time during which a ticket is passed on.
    time: Duration,
    tasks: Mutex<Tasks>,
}

impl Cohort {
    pub(super) fn new(limit: u32, time: Duration) -> Self {
        Self { limit, time, tasks: Mutex::default() }
    }

    /// Locks the tasks. While the lock is held, no foreign code may be called, and no value may be dropped
    /// that sends a request or owns a token.
    pub(super) fn lock(&self) -> MutexGuard<'_, Tasks> {
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for a turn. The task's place among the tasks is determined by the first poll.
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
            let waiting =
                Waiting { cohort: self, line: line.clone(), id, since, progress, tries: false, done: false };
            Ok(own_hold::logged(&line, None, waiting).await?.into())
        }
        .instrument(span)
        .await
    }

    /// Takes a turn if no other task is waiting or holding, and no other client holds the lock.
    pub(crate) async fn attempt(
        self: Arc<Self>,
        line: Line,
        progress: Progress,
    ) -> Result<LockHold, AcquireError> {
        let since = Instant::now();
        if let Some(id) = self.after_losses(|tasks| tasks.arrive_first(since)) {
            let waiting = Waiting { cohort: self, line, id, since, progress, tries: true, done: false };
            return Ok(waiting.await?.into());
        }
        let ahead = Some(self.lock().len());
        let missed = NotAcquired { ahead, ..NotAcquired::at(line.path()) };
        in_time(&line, &progress, async { Err(progress.refuse(missed, line.client(), line.first()).await) })
            .await
    }

    /// Creates the first turn with the ticket that the task `id` took; `hold` is the ticket's hold.
    pub(super) fn begin(self: &Arc<Self>, id: u64, hold: Hold) -> Turn {
        let watch = LossWatch::new(&hold, Arc::downgrade(self));
        let loss = Arc::clone(watch.loss());
        let ticket = Ticket { hold, loss: Arc::clone(&loss), turns: 0 };
        let turn = Turn::new(Arc::clone(self), ticket, Duration::ZERO);
        let until = after(Instant::now(), self.time);
        self.lock().drawn(id, watch, until);
        self.wake_after_loss(&loss);
        turn
    }

    /// Starts the next turn after a turn with `ticket` has ended. Returns the ticket if it has to be given
    /// up.
    pub(super) fn pass_on(self: &Arc<Self>, ticket: Ticket) -> Option<Ticket> {
        let limit = if planted!(TurnsWithoutLimit) { u32::MAX } else { self.limit };
        let after_turn = self.lock().end_turn(|watch| watch.is_of(&ticket.loss), limit, Instant::now());
        let AfterTurn::Pass(waited) = after_turn else { return Some(ticket) };
        // Reading the clock and creating a turn may both report a loss, so they run without the lock.
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
            // No task waits any more, so this ticket is not shared when this turn ends.
            Err((turn, _watch)) => return turn.into_ticket(),
        }
        self.wake_after_loss(&loss);
        None
    }

    /// Wakes the next task if the ticket was lost before its turn was recorded: such a loss has woken no
    /// task.
    fn wake_after_loss(&self, loss: &Loss) {
        if loss.happened() {
            self.wake_next();
        }
    }

    pub(super) fn wake_next(&self) {
        let next = self.lock().next();
        wake(next);
    }

    /// Returns the result of `act`. Forgets a lost ticket first, so that no task waits for the end of its
    /// turn.
    pub(super) fn after_losses<T>(&self, act: impl FnOnce(&mut Tasks) -> T) -> T {
        let mut tasks = self.lock();
        // Under one lock, a loss is either seen here or finds the waker that `act` leaves.
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
