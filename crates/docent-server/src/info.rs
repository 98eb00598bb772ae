use bytes::Bytes;
use docent_proto::{Acl, Stat};
use std::time::Duration;

/// State of a session, as the server sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SessionInfo {
    /// The session id.
    pub id: i64,
    /// The granted timeout.
    pub timeout: Duration,
    /// Whether the session has a link, other than a link to a follower that is cut off.
    pub attached: bool,
    /// Paths of the session's ephemeral nodes, in order.
    pub ephemerals: Vec<String>,
    /// Number of watches on the session's link.
    pub watches: usize,
    /// Number of watch events sent to the session since it was opened.
    pub events_sent: u64,
}

/// State of a node, as the server stores it.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct NodeInfo {
    /// The data; `None` is null.
    pub data: Option<Bytes>,
    /// The stat.
    pub stat: Stat,
    /// The access control list.
    pub acl: Vec<Acl>,
}

// Payloads and credentials are never printed.
impl std::fmt::Debug for NodeInfo {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("NodeInfo").field("stat", &self.stat).finish_non_exhaustive()
    }
}
