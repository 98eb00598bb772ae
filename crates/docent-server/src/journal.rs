use bytes::Bytes;
use std::time::Duration;

/// One change that the server committed. A multi and the end of a session write several with the same zxid.
///
/// Only what changed something is listed. A write that failed, or only checked, takes up a number too and
/// leaves a gap.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Transaction {
    /// Its number; it increases from transaction to transaction.
    pub zxid: i64,
    /// Time of the commit, in milliseconds since 1970 by the server's clock, rounded down; it never
    /// decreases. See [`Builder::clock`](crate::Builder::clock) for how it compares with other clocks.
    pub time_ms: i64,
    /// The session that asked for it; 0 for the server itself, which deletes empty containers and
    /// nodes whose time to live is over, or loses all.
    pub session: i64,
    /// The change that was made.
    pub kind: TransactionKind,
    /// The node it was done to; empty for sessions.
    pub path: String,
    /// The session that owns the node; 0 when it is not ephemeral.
    pub owner: i64,
    /// Data of the node from then on, if it was created or its data was set.
    pub data: Option<Bytes>,
}

/// Change that a [`Transaction`] made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum TransactionKind {
    /// A session was opened.
    #[non_exhaustive]
    SessionOpened {
        /// The timeout granted.
        timeout: Duration,
    },
    /// A session ended. The deletions of its ephemeral nodes follow with the same zxid.
    #[non_exhaustive]
    SessionEnded {
        /// Why.
        cause: EndCause,
        /// The timeout that was granted last.
        timeout: Duration,
    },
    /// A node was created.
    Created,
    /// A node was deleted.
    Deleted,
    /// A node's data was set.
    #[non_exhaustive]
    DataSet {
        /// Its version from then on.
        version: i32,
    },
    /// A node's access control list was set.
    #[non_exhaustive]
    AclSet {
        /// Its version from then on.
        version: i32,
    },
}

/// Cause of a session's end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum EndCause {
    /// It was not heard of in time.
    Expired,
    /// Its client closed it.
    Closed,
    /// [`Server::expire`](crate::Server::expire) ended it.
    Forced,
    /// [`Server::restart_empty`](crate::Server::restart_empty) lost it.
    Lost,
}
