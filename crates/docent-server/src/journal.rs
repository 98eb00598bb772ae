/// One change that the server committed. A multi and the end of a session write several with the same zxid.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Transaction {
    /// Its number; it increases from transaction to transaction.
    pub zxid: i64,
    /// When it was committed, in milliseconds since 1970 by the server's clock.
    pub time_ms: i64,
    /// The session that asked for it; 0 for the server itself, which deletes empty containers.
    pub session: i64,
    /// What was done.
    pub kind: TransactionKind,
    /// The node it was done to; empty for sessions.
    pub path: String,
    /// The session that owns the node; 0 when it is not ephemeral.
    pub owner: i64,
}

/// What a [`Transaction`] did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum TransactionKind {
    /// A session was opened.
    SessionOpened,
    /// A session ended. The deletions of its ephemeral nodes follow with the same zxid.
    SessionEnded,
    /// A node was created.
    Created,
    /// A node was deleted.
    Deleted,
    /// A node's data was set.
    DataSet,
    /// A node's access control list was set.
    AclSet,
}
