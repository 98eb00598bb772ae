use bytes::Bytes;
use docent_core::Node;
use std::fmt;
use std::sync::Arc;
use std::time::SystemTime;

/// Member of a group, as its node shows it.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Peer {
    /// Id, which is the name of its node.
    pub id: Arc<str>,
    /// Data of the member.
    pub data: Bytes,
    /// Time of joining, by the servers' clock: a member joins again with each new session. `None` for an own
    /// member whose node does not currently exist.
    pub since: Option<SystemTime>,
    /// Transaction by which the member joined: it changes if the member leaves and rejoins. `None` as above.
    pub czxid: Option<i64>,
    /// Session that owns the node. `None` as above, and for a persistent node that was created by hand.
    pub session_id: Option<i64>,
}

impl Peer {
    pub(super) fn new(id: &Arc<str>, node: &Node) -> Self {
        Self {
            id: Arc::clone(id),
            data: node.data.clone(),
            since: Some(node.stat.created),
            czxid: Some(node.stat.czxid),
            session_id: node.stat.owner,
        }
    }

    /// Creates the entry of an own member whose node does not exist.
    pub(super) fn absent(id: &Arc<str>, data: Bytes) -> Self {
        Self { id: Arc::clone(id), data, since: None, czxid: None, session_id: None }
    }

    /// Returns true while the node exists, as far as the servers have reported.
    pub fn is_present(&self) -> bool {
        self.czxid.is_some()
    }
}

// `Debug` does not print the data of nodes.
impl fmt::Debug for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Peer")
            .field("id", &self.id)
            .field("since", &self.since)
            .field("czxid", &self.czxid)
            .finish_non_exhaustive()
    }
}
