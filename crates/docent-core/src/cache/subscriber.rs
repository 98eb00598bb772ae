use super::children_event::{Replay, Told};
use std::collections::VecDeque;
use std::mem;
use std::task::Waker;

/// Subscriber, with the events that it has not taken yet.
#[derive(Debug)]
pub(super) struct Subscriber {
    backlog: Backlog,
    waker: Option<Waker>,
}

#[derive(Debug)]
enum Backlog {
    /// It has taken everything but these.
    Events(VecDeque<Told>),
    /// It has to get everything, because it is new or `missed` something.
    Everything { missed: bool },
}

/// Events for a subscriber.
pub(super) enum Taken {
    Event(Told),
    /// Everything; a subscriber that missed something is told so first.
    Whole {
        missed: bool,
        replay: Replay,
    },
    Nothing,
    End,
}

impl Subscriber {
    pub(super) fn new(backlog: impl IntoIterator<Item = Told>) -> Self {
        Self { backlog: Backlog::Events(backlog.into_iter().collect()), waker: None }
    }

    /// Adds events, of which it keeps at most `limit`. Returns the waker of the subscriber.
    pub(super) fn push(&mut self, events: &[Told], limit: usize) -> Option<Waker> {
        match &mut self.backlog {
            Backlog::Everything { .. } => return None,
            Backlog::Events(queue) if queue.len() + events.len() <= limit => {
                queue.extend(events.iter().cloned());
            }
            Backlog::Events(_) => self.backlog = Backlog::Everything { missed: true },
        }
        self.waker.take()
    }

    /// Begins the events of a subscriber: the cache has been read for the first time, everything has to be
    /// told, and no earlier event matters.
    pub(super) fn begin(&mut self) -> Option<Waker> {
        self.backlog = Backlog::Everything { missed: false };
        self.waker.take()
    }

    pub(super) fn wake(&mut self) -> Option<Waker> {
        self.waker.take()
    }

    pub(super) fn take(&mut self, replay: impl FnOnce() -> Replay, waker: &Waker, closed: bool) -> Taken {
        match &mut self.backlog {
            Backlog::Events(queue) => match queue.pop_front() {
                Some(event) => Taken::Event(event),
                None if closed => Taken::End,
                None => {
                    self.waker = Some(waker.clone());
                    Taken::Nothing
                }
            },
            Backlog::Everything { .. } if closed => Taken::End,
            Backlog::Everything { missed } => {
                let missed = mem::take(missed);
                self.backlog = Backlog::Events(VecDeque::new());
                Taken::Whole { missed, replay: replay() }
            }
        }
    }
}
