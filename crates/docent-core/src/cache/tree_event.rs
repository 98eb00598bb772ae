use super::children_event::{ChildrenEvent, ChildrenEvents};
use crate::error::Error;
use crate::node::Node;
use futures_core::Stream;
use futures_util::StreamExt;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

/// Event that a [`TreeCache`](super::TreeCache) sends to a subscriber. Paths are absolute, as the client
/// knows them.
#[derive(Clone)]
#[non_exhaustive]
pub enum TreeEvent {
    /// The events up to the next [`Ready`](Self::Ready) contain everything: discard all nodes reported
    /// before.
    Init,
    /// A node appeared: it is new to this subscriber, or a different node (with another `czxid`) replaced the
    /// one that was reported before.
    Added(Arc<str>, Arc<Node>),
    /// The data of a node that was reported before has changed.
    Updated(Arc<str>, Arc<Node>),
    /// A node was deleted. The deletions of the nodes below it are reported first.
    Delete(Arc<str>),
    /// A node exists but cannot be read or listed; its last known state is kept. The cache retries, and an
    /// `Added`, `Updated` or `Delete` follows when a read succeeds.
    Unreadable(Arc<str>, Error),
    /// The content reported so far is complete and current, as of the cache's last reads.
    Ready,
    /// From here on the content may be out of date: the link was lost, or this subscriber was too slow. A
    /// [`Ready`](Self::Ready) ends the gap, after the missed changes, or after an [`Init`](Self::Init) and
    /// the whole content.
    Gap,
}

// The data of the nodes is not printed.
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

/// The events of a [`TreeCache`](super::TreeCache) for one subscriber. The stream starts with `Init`, an
/// `Added` for each node and `Ready` as soon as the cache is loaded, and continues with the changes.
///
/// Intermediate values may be skipped, but never the last one. For a slow subscriber, the cache keeps as many
/// events as there are nodes, and at least 1,024. A subscriber that falls further behind gets `Gap` and the
/// whole content again.
///
/// An error such as `NoAuth` means that the node at the cache's path cannot be read or listed. It is reported
/// once, and the cache keeps retrying; a `Ready` follows when a read succeeds. The stream ends when the
/// client is closed.
///
/// # On drop
/// The cache forgets the subscriber. A cache lives as long as any of its handles or subscribers.
#[must_use = "a stream does nothing unless it is polled"]
pub struct TreeEvents(pub(super) ChildrenEvents);

impl Stream for TreeEvents {
    type Item = Result<TreeEvent, Error>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.0.poll_next_unpin(cx).map(|event| event.map(|event| event.map(of_tree)))
    }
}

/// Converts the event of a cache whose keys are paths.
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
