use super::children::{EventResult, Replay};
use std::collections::VecDeque;
use std::mem;
use std::task::Waker;

/// A subscriber, with the events that it has not taken yet.
#[derive(Debug)]
pub(super) struct Subscriber {
    backlog: Backlog,
    waker: Option<Waker>,
}

#[derive(Debug)]
enum Backlog {
    /// The subscriber has taken everything except these events.
    Events(VecDeque<EventResult>),
    /// The subscriber needs the whole content, because it is new or `missed` something.
    Replay { missed: bool },
}

/// Events for a subscriber.
pub(super) enum NextItem {
    Event(EventResult),
    /// The whole content. A subscriber that missed something gets a `Gap` first.
    Replay {
        missed: bool,
        replay: Replay,
    },
    Pending,
    End,
}

impl Subscriber {
    pub(super) fn new(backlog: impl IntoIterator<Item = EventResult>) -> Self {
        Self { backlog: Backlog::Events(backlog.into_iter().collect()), waker: None }
    }

    /// Adds events, keeping at most `limit`. Returns the waker of the subscriber.
    pub(super) fn push(&mut self, events: &[EventResult], limit: usize) -> Option<Waker> {
        match &mut self.backlog {
            Backlog::Replay { .. } => return None,
            Backlog::Events(queue) if queue.len() + events.len() <= limit => {
                queue.extend(events.iter().cloned());
            }
            Backlog::Events(_) => self.backlog = Backlog::Replay { missed: true },
        }
        self.waker.take()
    }

    /// Starts the events of a subscriber with the whole content, because the cache has been loaded for the
    /// first time. Earlier events no longer matter.
    pub(super) fn begin(&mut self) -> Option<Waker> {
        self.backlog = Backlog::Replay { missed: false };
        self.waker.take()
    }

    pub(super) fn wake(&mut self) -> Option<Waker> {
        self.waker.take()
    }

    pub(super) fn take(&mut self, replay: impl FnOnce() -> Replay, waker: &Waker, closed: bool) -> NextItem {
        match &mut self.backlog {
            Backlog::Events(queue) => match queue.pop_front() {
                Some(event) => NextItem::Event(event),
                None if closed => NextItem::End,
                None => {
                    self.waker = Some(waker.clone());
                    NextItem::Pending
                }
            },
            Backlog::Replay { .. } if closed => NextItem::End,
            Backlog::Replay { missed } => {
                let missed = mem::take(missed);
                self.backlog = Backlog::Events(VecDeque::new());
                NextItem::Replay { missed, replay: replay() }
            }
        }
    }
}
