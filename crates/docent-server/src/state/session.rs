use super::acl::Identity;
use docent_proto::Code;
use std::collections::BTreeSet;
use std::time::Duration;

/// More than any client has a use for, few enough to keep.
const MOST_IDENTITIES: usize = 1_000;

/// A session.
#[derive(Clone)]
pub(crate) struct Session {
    pub(crate) password: [u8; 16],
    pub(crate) timeout_ms: i32,
    /// End of the tick in which it ends unless it is touched, in milliseconds.
    pub(super) expires_at: i64,
    /// Identities of the client on its present link.
    pub(crate) identities: Vec<Identity>,
    pub(crate) ephemerals: BTreeSet<String>,
    pub(crate) attached: bool,
    /// The member that attached it last, as the leader knows.
    pub(crate) owner: u32,
    pub(crate) events_sent: u64,
}

impl Session {
    /// A session without a link, which ends unless it is touched.
    pub(super) fn new(password: [u8; 16], timeout_ms: i32) -> Self {
        Self {
            password,
            timeout_ms,
            expires_at: 0,
            identities: Vec::new(),
            ephemerals: BTreeSet::new(),
            attached: false,
            owner: 0,
            events_sent: 0,
        }
    }

    pub(crate) fn timeout(&self) -> Duration {
        wire_timeout(self.timeout_ms)
    }

    /// Makes the link's client one more identity.
    ///
    /// # Errors
    /// [`Code::AUTH_FAILED`] when it has as many as are kept.
    pub(crate) fn add_identity(&mut self, identity: Identity) -> Result<(), Code> {
        if !self.identities.contains(&identity) {
            if self.identities.len() >= MOST_IDENTITIES {
                return Err(Code::AUTH_FAILED);
            }
            self.identities.push(identity);
        }
        Ok(())
    }
}

/// A timeout that was granted, which is never negative.
pub(crate) fn wire_timeout(timeout_ms: i32) -> Duration {
    Duration::from_millis(u64::from(timeout_ms.unsigned_abs()))
}
