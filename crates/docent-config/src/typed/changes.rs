use super::NodeError;
use crate::value::ValueFormat;
use crate::{Origin, Revision, Snapshot};
use docent_core::{Error, Node, WatchStream};
use futures_core::Stream;
use futures_util::StreamExt;
use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};

/// Stream of the values of a [`TypedNode`](crate::TypedNode). See [`watch`](crate::TypedNode::watch).
///
/// An error means that the data is not a valid value, or that the node cannot be read. Each error is reported
/// once, and the stream continues.
///
/// # On drop
/// The watch at the server is removed.
#[must_use = "a stream does nothing unless it is polled"]
pub struct TypedNodeChanges<T> {
    nodes: WatchStream<Node>,
    format: ValueFormat<T>,
}

impl<T: 'static> TypedNodeChanges<T> {
    pub(super) fn new(nodes: WatchStream<Node>, format: ValueFormat<T>) -> Self {
        Self { nodes, format }
    }

    fn read(&self, node: Result<Option<Node>, Error>) -> Result<Option<Snapshot<T>>, NodeError> {
        let Some(Node { data, stat, .. }) = node? else { return Ok(None) };
        let revision = Revision::from(&stat);
        match self.format.read_revision(revision, &data) {
            Ok(value) => Ok(Some(Snapshot::new(value, revision, Origin::Server))),
            Err(fault) => Err(NodeError::Undecodable { path: self.format.checks.path.to_string(), fault }),
        }
    }
}

impl<T: 'static> Stream for TypedNodeChanges<T> {
    type Item = Result<Option<Snapshot<T>>, NodeError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let node = self.nodes.poll_next_unpin(cx);
        node.map(|node| node.map(|node| self.read(node)))
    }
}

impl<T> fmt::Debug for TypedNodeChanges<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TypedNodeChanges").field("path", &self.format.checks.path).finish_non_exhaustive()
    }
}
