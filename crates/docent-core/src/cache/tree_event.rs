use super::children_event::{ChildrenEvent, ChildrenEvents};
use crate::error::Error;
use crate::node::Node;
use futures_core::Stream;
use futures_util::StreamExt;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

/// Event that a [`TreeCache`](super::TreeCache) tells a subscriber. Paths are whole ones, as the client knows
/// them.
#[derive(Clone)]
#[non_exhaustive]
pub enum TreeEvent {
    /// The events up to the next [`Ready`](Self::Ready) tell everything: forget all nodes told before.
    Init,
    /// A node is there that was not: it is new to this subscriber, or another node (another `czxid`) took the
    /// place of the one that was told before.
    Added(Arc<str>, Arc<Node>),
    /// The data of a node that was told before has changed.
    Updated(Arc<str>, Arc<Node>),
    /// A node is gone. Those below it were told before it.
    Delete(Arc<str>),
    /// A node exists and cannot be read or listed; what was last known of it is kept. It is tried again, and
    /// an `Added`, `Updated` or `Delete` follows when that succeeds.
    Unreadable(Arc<str>, Error),
    /// Everything up to here is what the servers had.
    Ready,
    /// From here on it may be out of date: the link was lost, or this subscriber was too slow. A
    /// [`Ready`](Self::Ready) ends that, after the changes that were missed, or after an [`Init`](Self::Init)
    /// and everything.
    Gap,
}

// The nodes' data is not printed.
impl fmt::Debug for TreeEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Init => f.write_str("Init"),
            Self::Added(path, node) => write!(f, "Added({path:?}, mzxid {})", node.stat.mzxid),
            Self::Updated(path, node) => write!(f, "Updated({path:?}, mzxid {})", node.stat.mzxid),
            Self::Delete(path) => write!(f, "Delete({path:?})"),
            Self::Unreadable(path, error) => write!(f, "Unreadable({path:?}, {error})"),
            Self::Ready => f.write_str("Ready"),
            Self::Gap => f.write_str("Gap"),
        }
    }
}

/// The events of a [`TreeCache`](super::TreeCache) for one subscriber: `Init`, an `Added` for each node and
/// `Ready` as soon as the cache has been read once, then the changes.
///
/// Values in between may be left out, the last one never is. The cache keeps as many events for a slow
/// subscriber as there are nodes, and at least 1,024; one that is slower gets `Gap` and everything anew. An
/// error, as `NoAuth`, says that the node at the cache's path cannot be read or listed; it is told once and
/// tried again all the time, and a `Ready` says that it succeeded. The stream ends when the client is closed.
///
/// # On drop
/// The cache forgets the subscriber. A cache lives as long as one of its handles or subscribers.
#[must_use = "a stream does nothing unless it is polled"]
pub struct TreeEvents(pub(super) ChildrenEvents);

impl Stream for TreeEvents {
    type Item = Result<TreeEvent, Error>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.0.poll_next_unpin(cx).map(|event| event.map(|event| event.map(of_tree)))
    }
}

/// The event of a tree whose nodes are told by their paths.
fn of_tree(event: ChildrenEvent) -> TreeEvent {
    match event {
        ChildrenEvent::Init => TreeEvent::Init,
        ChildrenEvent::Added(path, node) => TreeEvent::Added(path, node),
        ChildrenEvent::Updated(path, node) => TreeEvent::Updated(path, node),
        ChildrenEvent::Delete(path) => TreeEvent::Delete(path),
        ChildrenEvent::Unreadable(path, error) => TreeEvent::Unreadable(path, error),
        ChildrenEvent::Ready => TreeEvent::Ready,
        ChildrenEvent::Gap => TreeEvent::Gap,
    }
}

impl fmt::Debug for TreeEvents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TreeEvents").finish_non_exhaustive()
    }
}
