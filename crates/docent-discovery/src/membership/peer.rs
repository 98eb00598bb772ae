use bytes::Bytes;
use docent_core::Node;
use std::fmt;
use std::sync::Arc;
use std::time::SystemTime;

/// Member of a group, as its node shows it.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Peer {
    /// Its id, the name of its node.
    pub id: Arc<str>,
    /// Data that the member gives about itself.
    pub data: Bytes,
    /// Since when it is in, by the servers' clock: it has joined anew with each new session. `None` for an
    /// own entry whose node is not there at present.
    pub since: Option<SystemTime>,
    /// Transaction by which it joined: one that left and joined again has another. `None` as above.
    pub czxid: Option<i64>,
    /// The session that owns its node; `None` as above, and for a node that somebody made by hand and that no
    /// session owns.
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

    /// An own entry whose node is not there.
    pub(super) fn absent(id: &Arc<str>, data: Bytes) -> Self {
        Self { id: Arc::clone(id), data, since: None, czxid: None, session_id: None }
    }

    /// True while its node is there, as far as the servers told.
    pub fn is_present(&self) -> bool {
        self.czxid.is_some()
    }
}

// The data of nodes is not printed.
impl fmt::Debug for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Peer")
            .field("id", &self.id)
            .field("since", &self.since)
            .field("czxid", &self.czxid)
            .finish_non_exhaustive()
    }
}
