use super::children::{ChildrenEvent, EventResult, Replay};
use std::collections::VecDeque;
use std::mem;
use std::task::{Poll, Waker};

/// A subscriber, with the events that it has not taken yet.
#[derive(Debug)]
pub(super) struct Subscriber {
    /// Events to take before the backlog.
    replay: Option<Replay>,
    backlog: Backlog,
    waker: Option<Waker>,
}

#[derive(Debug)]
enum Backlog {
    /// The subscriber has taken everything except these events.
    Events(VecDeque<EventResult>),
    /// The subscriber needs the whole content, because it is new or `missed` something. If it missed
    /// something, it gets a `Gap` first.
    Replay { missed: bool },
}

impl Subscriber {
    pub(super) fn new(backlog: impl IntoIterator<Item = EventResult>) -> Self {
        Self { replay: None, backlog: Backlog::Events(backlog.into_iter().collect()), waker: None }
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

    /// Takes the next event; `replay` starts with the current content. The events end once the cache is
    /// `closed`.
    pub(super) fn take(
        &mut self,
        replay: impl FnOnce() -> Replay,
        waker: &Waker,
        closed: bool,
    ) -> Poll<Option<EventResult>> {
        if let Some(event) = self.replay.as_mut().and_then(Replay::next) {
            return Poll::Ready(Some(event));
        }
        self.replay = None;
        match &mut self.backlog {
            Backlog::Events(queue) => match queue.pop_front() {
                Some(event) => Poll::Ready(Some(event)),
                None if closed => Poll::Ready(None),
                None => {
                    self.waker = Some(waker.clone());
                    Poll::Pending
                }
            },
            Backlog::Replay { .. } if closed => Poll::Ready(None),
            Backlog::Replay { missed } => {
                let missed = mem::take(missed);
                self.backlog = Backlog::Events(VecDeque::new());
                let replay = self.replay.insert(replay());
                Poll::Ready(if missed { Some(Ok(ChildrenEvent::Gap)) } else { replay.next() })
            }
        }
    }
}
