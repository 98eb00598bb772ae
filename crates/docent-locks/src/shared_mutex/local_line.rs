use std::collections::BTreeMap;
use std::task::Waker;
use std::time::Duration;
use tokio::time::Instant;

/// Tasks of one process that wait for one lock, in order of arrival, and the ticket that they share. Sends no
/// requests and calls no foreign code. `R` is a ticket that is held, `T` a turn with it, and `D` a draw: the
/// attempt to take a ticket.
///
/// The front is the first task that has no turn yet. Only the front draws a ticket, and if it leaves, the
/// next task continues its draw. If a task leaves after it was given a turn but before it took the turn, the
/// turn is passed on. If a turn is lost before the task took it, the task keeps waiting in its place, behind
/// the task that is drawing by then.
pub(super) struct LocalLine<R, T, D> {
    waiters: BTreeMap<u64, Waiter<T>>,
    arrivals: u64,
    stage: Stage<R, D>,
}

struct Waiter<T> {
    since: Instant,
    waker: Option<Waker>,
    given: Option<T>,
}

enum Stage<R, D> {
    /// There is no ticket, or the last ticket was given up.
    Free,
    /// The task `by` draws a ticket. It is the front until it leaves. The draw is `None` while it is polled.
    Drawing { by: u64, draw: Option<D>, tries: bool },
    /// A turn has ended, and the next turn has not been given yet.
    Passing(Held<R>),
    /// A task has a turn, or was given one.
    Held(Held<R>),
}

struct Held<R> {
    ticket: R,
    /// Number of times that the ticket was passed on.
    passed: u32,
    /// Time after which no turn begins.
    until: Instant,
}

/// Next step of a task that waits.
pub(super) enum Step<T, D> {
    /// The task has its turn.
    Turn(T),
    /// The task has to create a draw and poll it.
    Draw,
    /// The task has to poll this draw.
    Poll(D),
    /// The task waits to be woken.
    Wait,
}

/// Outcome of the end of a turn.
pub(super) enum AfterTurn<R> {
    /// The ticket had already been given up.
    Stale,
    /// The ticket has to be given up.
    GiveUp(R),
    /// The ticket may be passed on. The next task has waited for this long.
    Pass(Duration),
}

/// What is left of a task that stopped waiting.
pub(super) struct Departure<T, D> {
    /// Turn that the task was given. Dropping it passes it on.
    pub(super) turn: Option<T>,
    /// Draw that no task needs any more.
    pub(super) draw: Option<D>,
    /// Waker of the next task, which the caller has to wake.
    pub(super) next: Option<Waker>,
}

impl<R, T, D> Default for LocalLine<R, T, D> {
    fn default() -> Self {
        Self { waiters: BTreeMap::new(), arrivals: 0, stage: Stage::Free }
    }
}

impl<R, T, D> LocalLine<R, T, D> {
    /// Adds a task and returns its number.
    pub(super) fn arrive(&mut self, now: Instant) -> u64 {
        let id = self.arrivals;
        self.arrivals += 1;
        self.wait_again(id, now);
        id
    }

    /// Makes the task `id`, which arrived at `since`, wait again, because its turn was lost before it took
    /// the turn.
    pub(super) fn wait_again(&mut self, id: u64, since: Instant) {
        self.waiters.insert(id, Waiter { since, waker: None, given: None });
    }

    /// Adds a task like [`arrive`](Self::arrive), if no other task is present.
    pub(super) fn arrive_first(&mut self, now: Instant) -> Option<u64> {
        (matches!(self.stage, Stage::Free) && self.front().is_none()).then(|| self.arrive(now))
    }

    /// Returns the number of tasks present, including the task that has its turn.
    pub(super) fn len(&self) -> usize {
        self.waiters.len() + usize::from(matches!(self.stage, Stage::Passing(_) | Stage::Held(_)))
    }

    fn front(&self) -> Option<u64> {
        match self.stage {
            Stage::Drawing { by, .. } => Some(by),
            _ => self.first(),
        }
    }

    /// Returns the first task that has no turn yet.
    fn first(&self) -> Option<u64> {
        self.waiters.iter().find(|(_, waiter)| waiter.given.is_none()).map(|(id, _)| *id)
    }

    /// Takes the waker of the front.
    pub(super) fn next(&mut self) -> Option<Waker> {
        let front = self.front()?;
        self.waiters.get_mut(&front)?.waker.take()
    }

    /// Returns the next step of the task `id`. If the task has to draw, `tries` records whether its draw only
    /// tries.
    pub(super) fn poll(&mut self, id: u64, tries: bool, waker: &Waker) -> Step<T, D> {
        let is_front = self.front() == Some(id);
        let Some(waiter) = self.waiters.get_mut(&id) else { return Step::Wait };
        if let Some(turn) = waiter.given.take() {
            self.waiters.remove(&id);
            return Step::Turn(turn);
        }
        if waiter.waker.as_ref().is_none_or(|known| !known.will_wake(waker)) {
            waiter.waker = Some(waker.clone());
        }
        match &mut self.stage {
            Stage::Free if is_front => {
                self.stage = Stage::Drawing { by: id, draw: None, tries };
                Step::Draw
            }
            Stage::Drawing { draw, .. } if is_front => draw.take().map_or(Step::Wait, Step::Poll),
            _ => Step::Wait,
        }
    }

    /// Returns the draw of the front after it was polled.
    pub(super) fn put_back(&mut self, held_draw: D) {
        if let Stage::Drawing { draw, .. } = &mut self.stage {
            *draw = Some(held_draw);
        }
    }

    /// Removes the front `id`, whose draw failed, and returns the waker of the next task, which draws for
    /// itself.
    pub(super) fn failed(&mut self, id: u64) -> Option<Waker> {
        self.waiters.remove(&id);
        self.stage = Stage::Free;
        self.next()
    }

    /// Gives the front `id` its turn with `ticket`. No other turn begins after `until`.
    pub(super) fn drawn(&mut self, id: u64, ticket: R, until: Instant) {
        self.waiters.remove(&id);
        self.stage = Stage::Held(Held { ticket, passed: 0, until });
    }

    /// Removes the task `id`, which stopped waiting.
    pub(super) fn leave(&mut self, id: u64) -> Departure<T, D> {
        let was_front = self.front() == Some(id);
        let turn = self.waiters.remove(&id).and_then(|waiter| waiter.given);
        if !was_front {
            return Departure { turn, draw: None, next: None };
        }
        let (mut draw, next) = (None, self.first());
        if let Stage::Drawing { by, draw: held_draw, tries } = &mut self.stage {
            match next {
                Some(next) if held_draw.is_some() && !*tries => *by = next,
                // A missing draw means that its poll panicked. A draw that only tries is of no use to the
                // waiting tasks.
                _ => {
                    draw = held_draw.take();
                    self.stage = Stage::Free;
                }
            }
        }
        Departure { turn, draw, next: self.next() }
    }

    /// Ends a turn with the ticket for which `is` returns true. A ticket is passed on at most `limit` times.
    pub(super) fn end_turn(&mut self, is: impl Fn(&R) -> bool, limit: u32, now: Instant) -> AfterTurn<R> {
        let (held, stage) = match std::mem::replace(&mut self.stage, Stage::Free) {
            Stage::Held(held) if is(&held.ticket) => (held, Stage::Passing),
            other => {
                self.stage = other;
                return AfterTurn::Stale;
            }
        };
        let waited = self.front().map(|front| now.saturating_duration_since(self.waiters[&front].since));
        match waited {
            Some(waited) if held.passed < limit && now < held.until => {
                self.stage = stage(held);
                AfterTurn::Pass(waited)
            }
            _ => AfterTurn::GiveUp(held.ticket),
        }
    }

    /// Gives the next `turn` to the front, and returns the front's waker.
    ///
    /// # Errors
    /// The turn, and the ticket, which is given up because no task waits any more.
    pub(super) fn pass(&mut self, turn: T) -> Result<Option<Waker>, (T, Option<R>)> {
        let front = self.front();
        let held = self.take_passing();
        let waiter = front.and_then(|front| self.waiters.get_mut(&front));
        match (held, waiter) {
            (Some(held), Some(waiter)) => {
                waiter.given = Some(turn);
                self.stage = Stage::Held(Held { passed: held.passed + 1, ..held });
                Ok(waiter.waker.take())
            }
            (held, _) => Err((turn, held.map(|held| held.ticket))),
        }
    }

    /// Gives up the ticket instead of passing it on.
    pub(super) fn give_up(&mut self) -> Option<R> {
        self.take_passing().map(|held| held.ticket)
    }

    fn take_passing(&mut self) -> Option<Held<R>> {
        match std::mem::replace(&mut self.stage, Stage::Free) {
            Stage::Passing(held) => Some(held),
            other => {
                self.stage = other;
                None
            }
        }
    }

    /// Gives up the ticket if `is` reports it as lost, so that the waiting tasks do not wait for the end of
    /// its turn.
    pub(super) fn lost(&mut self, is: impl Fn(&R) -> bool) -> Option<(R, Option<Waker>)> {
        match std::mem::replace(&mut self.stage, Stage::Free) {
            Stage::Held(held) if is(&held.ticket) => Some((held.ticket, self.next())),
            other => {
                self.stage = other;
                None
            }
        }
    }
}
