use bytes::Bytes;
use std::time::Duration;

/// One change that the server committed. A multi, or the end of a session, can record several changes with
/// the same zxid.
///
/// The journal contains only actual changes. A write that failed, or that only checked something, uses up a
/// zxid too and leaves a gap.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Transaction {
    /// The transaction id, which increases from one transaction to the next.
    pub zxid: i64,
    /// Time of the commit by the server's clock, in milliseconds since 1970, rounded down. It never
    /// decreases. See [`Builder::clock`](crate::Builder::clock) for how it compares with other clocks.
    pub time_ms: i64,
    /// The session that requested the change. It is 0 for the server itself, which deletes empty containers
    /// and nodes whose time to live has passed, and which can lose all its state.
    pub session: i64,
    /// The kind of change.
    pub kind: TransactionKind,
    /// Path of the changed node; empty for a session.
    pub path: String,
    /// The session that owns the node; 0 if the node is not ephemeral.
    pub owner: i64,
    /// The new data of the node, if it was created or its data was set.
    pub data: Option<Bytes>,
}

/// Kind of change that a [`Transaction`] made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum TransactionKind {
    /// A session was opened.
    #[non_exhaustive]
    SessionOpened {
        /// The granted timeout.
        timeout: Duration,
    },
    /// A session ended. The deletions of its ephemeral nodes follow with the same zxid.
    #[non_exhaustive]
    SessionEnded {
        /// Why the session ended.
        cause: EndCause,
        /// The last granted timeout.
        timeout: Duration,
    },
    /// A node was created.
    Created,
    /// A node was deleted.
    Deleted,
    /// A node's data was set.
    #[non_exhaustive]
    DataSet {
        /// The new data version.
        version: i32,
    },
    /// A node's access control list was set.
    #[non_exhaustive]
    AclSet {
        /// The new version of the access control list.
        version: i32,
    },
}

/// Cause of a session's end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum EndCause {
    /// The server received nothing for the session within its timeout.
    Expired,
    /// The client closed the session.
    Closed,
    /// [`Server::expire`](crate::Server::expire) ended the session.
    Forced,
    /// [`Server::restart_empty`](crate::Server::restart_empty) discarded the session.
    Lost,
}
