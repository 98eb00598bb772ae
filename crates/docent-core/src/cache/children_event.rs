use super::children::Handle;
use super::snapshot::ChildrenSnapshot;
use super::subscriber::Taken;
use crate::error::Error;
use crate::node::Node;
use futures_core::Stream;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

/// Event that a [`ChildrenCache`](super::ChildrenCache) tells a subscriber.
#[derive(Clone)]
#[non_exhaustive]
pub enum ChildrenEvent {
    /// The events up to the next [`Ready`](Self::Ready) tell everything: forget all children told before.
    Init,
    /// A child is there that was not: it is new to this subscriber, or another node (another `czxid`) took
    /// the place of the one that was told before.
    Added(Arc<str>, Arc<Node>),
    /// The data of a child that was told before has changed.
    Updated(Arc<str>, Arc<Node>),
    /// A child is gone.
    Delete(Arc<str>),
    /// A child exists and cannot be read; its last known data is kept. It is tried again, and an `Added`,
    /// `Updated` or `Delete` follows when that succeeds.
    Unreadable(Arc<str>, Error),
    /// Everything up to here is what the servers had.
    Ready,
    /// From here on it may be out of date: the link was lost, or this subscriber was too slow. A
    /// [`Ready`](Self::Ready) ends that, after the changes that were missed, or after an [`Init`](Self::Init)
    /// and everything.
    Gap,
}

/// Item of a subscriber's stream: an event, or why the children cannot be listed.
pub(super) type Told = Result<ChildrenEvent, Error>;

// The nodes' data is not printed.
impl fmt::Debug for ChildrenEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Init => f.write_str("Init"),
            Self::Added(name, node) => write!(f, "Added({name:?}, mzxid {})", node.stat.mzxid),
            Self::Updated(name, node) => write!(f, "Updated({name:?}, mzxid {})", node.stat.mzxid),
            Self::Delete(name) => write!(f, "Delete({name:?})"),
            Self::Unreadable(name, error) => write!(f, "Unreadable({name:?}, {error})"),
            Self::Ready => f.write_str("Ready"),
            Self::Gap => f.write_str("Gap"),
        }
    }
}

/// The events of a [`ChildrenCache`](super::ChildrenCache) for one subscriber: `Init`, an `Added` for each
/// child and `Ready` as soon as the cache has been read once, then the changes.
///
/// Values in between may be left out, the last one never is. The cache keeps as many events for a slow
/// subscriber as there are children, and at least 1,024; one that is slower gets `Gap` and everything anew.
/// An error, as `NoAuth`, says that the children cannot be listed; it is told once and tried again all the
/// time, and a `Ready` says that it succeeded.
/// It ends when the client is closed.
///
/// # On drop
/// The cache forgets the subscriber. A cache lives as long as one of its handles or subscribers.
#[must_use = "a stream does nothing unless it is polled"]
pub struct ChildrenEvents {
    handle: Arc<Handle>,
    id: u64,
    replay: Option<Replay>,
}

impl ChildrenEvents {
    pub(super) fn new(handle: Arc<Handle>) -> Self {
        let id = handle.store.subscribe();
        Self { handle, id, replay: None }
    }
}

impl Stream for ChildrenEvents {
    type Item = Result<ChildrenEvent, Error>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Told>> {
        loop {
            if let Some(replay) = &mut self.replay {
                match replay.next() {
                    Some(event) => return Poll::Ready(Some(event)),
                    None => self.replay = None,
                }
            }
            match self.handle.store.take(self.id, cx) {
                Taken::Event(event) => return Poll::Ready(Some(event)),
                Taken::Whole { missed, replay } => {
                    self.replay = Some(replay);
                    if missed {
                        return Poll::Ready(Some(Ok(ChildrenEvent::Gap)));
                    }
                }
                Taken::Nothing => return Poll::Pending,
                Taken::End => return Poll::Ready(None),
            }
        }
    }
}

impl Drop for ChildrenEvents {
    fn drop(&mut self) {
        self.handle.store.unsubscribe(self.id);
    }
}

impl fmt::Debug for ChildrenEvents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ChildrenEvents").finish_non_exhaustive()
    }
}

/// Events that tell everything, for a subscriber that begins or was too slow.
#[derive(Debug)]
pub(super) struct Replay {
    snapshot: Arc<ChildrenSnapshot>,
    /// Item after those of the children.
    end: Option<Told>,
    at: Stage,
}

#[derive(Debug)]
enum Stage {
    Start,
    Children(Option<Arc<str>>),
    Unreadable(Option<Arc<str>>),
}

impl Replay {
    pub(super) fn new(snapshot: Arc<ChildrenSnapshot>, end: Option<Told>) -> Self {
        Self { snapshot, end, at: Stage::Start }
    }
}

impl Iterator for Replay {
    type Item = Told;

    fn next(&mut self) -> Option<Told> {
        if matches!(self.at, Stage::Start) {
            self.at = Stage::Children(None);
            return Some(Ok(ChildrenEvent::Init));
        }
        if let Stage::Children(last) = &mut self.at {
            if let Some((name, node)) = self.snapshot.child_after(last.as_deref()) {
                *last = Some(Arc::clone(name));
                return Some(Ok(ChildrenEvent::Added(Arc::clone(name), Arc::clone(node))));
            }
            self.at = Stage::Unreadable(None);
        }
        if let Stage::Unreadable(last) = &mut self.at
            && let Some((name, error)) = self.snapshot.unreadable_after(last.as_deref())
        {
            *last = Some(Arc::clone(name));
            return Some(Ok(ChildrenEvent::Unreadable(Arc::clone(name), error.clone())));
        }
        self.end.take()
    }
}
