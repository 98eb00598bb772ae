use bytes::Bytes;
use docent_core::{Fence, Participant};
use std::fmt;
use std::time::SystemTime;

/// The leader of an election, as a server saw it.
///
/// It may have been lost or have resigned since: this is for people, dashboards and clients that look for
/// somebody to talk to. Work that must be done by the leader alone is done by the leader itself, under its
/// [`Leadership`](crate::Leadership).
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Leader {
    /// Its id, or its data as text; replacement characters stand for bytes that are no text.
    pub id: String,
    /// Data of its node.
    pub data: Bytes,
    /// The fence of its term.
    pub fence: Fence,
    /// When it became a candidate, by the server's clock.
    pub since: SystemTime,
    /// The session that its candidacy belongs to.
    pub session_id: i64,
}

impl From<Participant> for Leader {
    fn from(first: Participant) -> Self {
        Self {
            id: String::from_utf8_lossy(&first.identity).into_owned(),
            data: first.identity,
            fence: first.fence,
            since: first.since,
            session_id: first.session_id,
        }
    }
}

// The node's data is not printed, and the id is made of that.
impl fmt::Debug for Leader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Leader")
            .field("data", &format_args!("{} bytes", self.data.len()))
            .field("fence", &self.fence)
            .field("since", &self.since)
            .field("session_id", &format_args!("{:#x}", self.session_id))
            .finish_non_exhaustive()
    }
}
