use super::children::Handle;
use super::snapshot::ChildrenSnapshot;
use super::subscriber::NextItem;
use crate::error::Error;
use crate::node::Node;
use futures_core::Stream;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

/// Event that a [`ChildrenCache`](super::ChildrenCache) sends to a subscriber.
#[derive(Clone)]
#[non_exhaustive]
pub enum ChildrenEvent {
    /// The events up to the next [`Ready`](Self::Ready) contain everything: discard all children reported
    /// before.
    Init,
    /// A child appeared: it is new to this subscriber, or a different node (with another `czxid`) replaced
    /// the one that was reported before.
    Added(Arc<str>, Arc<Node>),
    /// The data of a child that was reported before has changed.
    Updated(Arc<str>, Arc<Node>),
    /// A child was deleted.
    Delete(Arc<str>),
    /// A child exists but cannot be read; its last known data is kept. The cache retries, and an `Added`,
    /// `Updated` or `Delete` follows when a read succeeds.
    Unreadable(Arc<str>, Error),
    /// The content reported so far is complete and current, as of the cache's last reads.
    Ready,
    /// From here on the content may be out of date: the link was lost, or this subscriber was too slow. A
    /// [`Ready`](Self::Ready) ends the gap, after the missed changes, or after an [`Init`](Self::Init) and
    /// the whole content.
    Gap,
}

/// Item of a subscriber's stream: an event, or the reason why the children cannot be listed.
pub(super) type EventResult = Result<ChildrenEvent, Error>;

// The data of the nodes is not printed.
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

/// The events of a [`ChildrenCache`](super::ChildrenCache) for one subscriber. The stream starts with `Init`,
/// an `Added` for each child and `Ready` as soon as the cache is loaded, and continues with the changes.
///
/// Intermediate values may be skipped, but never the last one. For a slow subscriber, the cache keeps as many
/// events as there are children, and at least 1,024. A subscriber that falls further behind gets `Gap` and
/// the whole content again.
///
/// An error such as `NoAuth` means that the children cannot be listed. It is reported once, and the cache
/// keeps retrying; a `Ready` follows when a listing succeeds. The stream ends when the client is closed.
///
/// # On drop
/// The cache forgets the subscriber. A cache lives as long as any of its handles or subscribers.
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

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<EventResult>> {
        loop {
            if let Some(replay) = &mut self.replay {
                match replay.next() {
                    Some(event) => return Poll::Ready(Some(event)),
                    None => self.replay = None,
                }
            }
            match self.handle.store.take(self.id, cx) {
                NextItem::Event(event) => return Poll::Ready(Some(event)),
                NextItem::Replay { missed, replay } => {
                    self.replay = Some(replay);
                    if missed {
                        return Poll::Ready(Some(Ok(ChildrenEvent::Gap)));
                    }
                }
                NextItem::Pending => return Poll::Pending,
                NextItem::End => return Poll::Ready(None),
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

/// Events that contain the whole content, for a subscriber that is new or was too slow.
#[derive(Debug)]
pub(super) struct Replay {
    snapshot: Arc<ChildrenSnapshot>,
    /// Item that follows those of the children.
    end: Option<EventResult>,
    at: Stage,
}

#[derive(Debug)]
enum Stage {
    Start,
    Children(Option<Arc<str>>),
    Unreadable(Option<Arc<str>>),
}

impl Replay {
    pub(super) fn new(snapshot: Arc<ChildrenSnapshot>, end: Option<EventResult>) -> Self {
        Self { snapshot, end, at: Stage::Start }
    }
}

impl Iterator for Replay {
    type Item = EventResult;

    fn next(&mut self) -> Option<EventResult> {
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
