use bytes::Bytes;
use docent_proto::{Acl, Stat};
use std::time::Duration;

/// A session as the server sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SessionInfo {
    /// Its id.
    pub id: i64,
    /// The timeout granted.
    pub timeout: Duration,
    /// True while it has a link, other than one of a follower that is cut off.
    pub attached: bool,
    /// Its ephemeral nodes, in order.
    pub ephemerals: Vec<String>,
    /// Watches that are set on its link.
    pub watches: usize,
    /// Watch events that were sent to it since it was opened.
    pub events_sent: u64,
}

/// A node as the server keeps it.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct NodeInfo {
    /// Its data; `None` is null.
    pub data: Option<Bytes>,
    /// Its stat.
    pub stat: Stat,
    /// Its access control list.
    pub acl: Vec<Acl>,
}

// Payloads and credentials are never printed.
impl std::fmt::Debug for NodeInfo {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("NodeInfo").field("stat", &self.stat).finish_non_exhaustive()
    }
}
