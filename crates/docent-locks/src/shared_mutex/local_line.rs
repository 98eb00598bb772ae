use std::collections::BTreeMap;
use std::task::Waker;
use std::time::Duration;
use tokio::time::Instant;

/// Tasks of one process that wait for one lock, in the order in which they came, and the ticket that they
/// share. Makes no request, and calls no code of others: `R` is a ticket that is held, `T` a turn with it,
/// and `D` the draw of one.
///
/// The first task that has no turn yet is the front: it alone draws a ticket, and the next one goes on with
/// its draw if it leaves. A turn that a task was given and has not taken is passed on when the task leaves.
/// One whose turn was lost before it took it waits on in its place, behind the task that draws by then.
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
    /// There is no ticket, or it was given up.
    Free,
    /// The task `by`, which is the front until it leaves, draws a ticket. Its draw is not here while it is
    /// polled.
    Drawing { by: u64, draw: Option<D>, tries: bool },
    /// A turn is over, and the next one not yet given.
    Passing(Held<R>),
    /// A task has a turn, or was given one.
    Held(Held<R>),
}

struct Held<R> {
    ticket: R,
    /// Times that it was passed on.
    passed: u32,
    /// No turn begins after this.
    until: Instant,
}

/// Next step of a task that waits.
pub(super) enum Step<T, D> {
    /// It has its turn.
    Turn(T),
    /// It is to make a draw, and poll that.
    Draw,
    /// It is to poll this draw.
    Poll(D),
    /// It is woken.
    Wait,
}

/// Outcome of a turn's end.
pub(super) enum Over<R> {
    /// The ticket was given up before.
    Stale,
    /// The ticket is to be given up.
    GiveUp(R),
    /// The ticket may be passed on: the task that is to get it has waited for so long.
    Pass(Duration),
}

/// Leavings of a task that did not wait on.
pub(super) struct Left<T, D> {
    /// Turn that it was given: to be dropped, which passes it on.
    pub(super) turn: Option<T>,
    /// Draw that nobody wants any more.
    pub(super) draw: Option<D>,
    /// To be woken.
    pub(super) next: Option<Waker>,
}

impl<R, T, D> Default for LocalLine<R, T, D> {
    fn default() -> Self {
        Self { waiters: BTreeMap::new(), arrivals: 0, stage: Stage::Free }
    }
}

impl<R, T, D> LocalLine<R, T, D> {
    /// A task comes. Its number.
    pub(super) fn arrive(&mut self, now: Instant) -> u64 {
        let id = self.arrivals;
        self.arrivals += 1;
        self.wait_on(id, now);
        id
    }

    /// The task `id`, which came at `since`, waits again: its turn was lost before it took it.
    pub(super) fn wait_on(&mut self, id: u64, since: Instant) {
        self.waiters.insert(id, Waiter { since, waker: None, given: None });
    }

    /// As [`arrive`](Self::arrive), if nobody is here.
    pub(super) fn arrive_first(&mut self, now: Instant) -> Option<u64> {
        (matches!(self.stage, Stage::Free) && self.front().is_none()).then(|| self.arrive(now))
    }

    /// Number of tasks that are here, with the one that has its turn.
    pub(super) fn len(&self) -> usize {
        self.waiters.len() + usize::from(matches!(self.stage, Stage::Passing(_) | Stage::Held(_)))
    }

    fn front(&self) -> Option<u64> {
        match self.stage {
            Stage::Drawing { by, .. } => Some(by),
            _ => self.first(),
        }
    }

    /// The first task that has no turn yet.
    fn first(&self) -> Option<u64> {
        self.waiters.iter().find(|(_, waiter)| waiter.given.is_none()).map(|(id, _)| *id)
    }

    /// The waker of the front.
    pub(super) fn next(&mut self) -> Option<Waker> {
        let front = self.front()?;
        self.waiters.get_mut(&front)?.waker.take()
    }

    /// The task `id` asks for its turn; where it draws, its draw may be one that only `tries`.
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

    /// The draw of the front goes on.
    pub(super) fn put_back(&mut self, ours: D) {
        if let Stage::Drawing { draw, .. } = &mut self.stage {
            *draw = Some(ours);
        }
    }

    /// The draw of the front `id` failed: the task leaves, and the next one draws for itself. Its waker.
    pub(super) fn failed(&mut self, id: u64) -> Option<Waker> {
        self.waiters.remove(&id);
        self.stage = Stage::Free;
        self.next()
    }

    /// The front `id` has `ticket`, and its turn: no other begins after `until`.
    pub(super) fn drawn(&mut self, id: u64, ticket: R, until: Instant) {
        self.waiters.remove(&id);
        self.stage = Stage::Held(Held { ticket, passed: 0, until });
    }

    /// The task `id` waits no more.
    pub(super) fn leave(&mut self, id: u64) -> Left<T, D> {
        let was_front = self.front() == Some(id);
        let turn = self.waiters.remove(&id).and_then(|waiter| waiter.given);
        if !was_front {
            return Left { turn, draw: None, next: None };
        }
        let (mut draw, next) = (None, self.first());
        if let Stage::Drawing { by, draw: ours, tries } = &mut self.stage {
            match next {
                Some(next) if ours.is_some() && !*tries => *by = next,
                // A draw that is not here panicked. One that only tries is of no use to those who wait.
                _ => {
                    draw = ours.take();
                    self.stage = Stage::Free;
                }
            }
        }
        Left { turn, draw, next: self.next() }
    }

    /// A turn with the ticket that `is` this one is over. It is passed on at most `limit` times.
    pub(super) fn over(&mut self, is: impl Fn(&R) -> bool, limit: u32, now: Instant) -> Over<R> {
        let (held, stage) = match std::mem::replace(&mut self.stage, Stage::Free) {
            Stage::Held(held) if is(&held.ticket) => (held, Stage::Passing),
            other => {
                self.stage = other;
                return Over::Stale;
            }
        };
        let waited = self.front().map(|front| now.saturating_duration_since(self.waiters[&front].since));
        match waited {
            Some(waited) if held.passed < limit && now < held.until => {
                self.stage = stage(held);
                Over::Pass(waited)
            }
            _ => Over::GiveUp(held.ticket),
        }
    }

    /// The next `turn` is given to the front, whose waker is returned.
    ///
    /// # Errors
    /// The turn, and the ticket, which is given up: nobody waits any more.
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

    /// The ticket is given up instead of being passed on.
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

    /// Gives up the ticket if it `is` lost: those who wait do not wait for the end of its turn.
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
