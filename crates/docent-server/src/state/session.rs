use super::acl::{self, Identity};
use super::refusal::Notes;
use super::sasl::Sasl;
use docent_proto::Code;
use std::collections::BTreeSet;
use std::time::Duration;

/// A session.
#[derive(Clone)]
pub(crate) struct Session {
    pub(crate) password: [u8; 16],
    pub(crate) timeout_ms: i32,
    /// Whether this is a local session of a read-only server, which is opened and ended without a
    /// transaction.
    pub(super) is_local: bool,
    /// End of the tick in which the session expires unless it is touched, in milliseconds.
    pub(super) expires_at: i64,
    /// Identities of the client on its current link.
    pub(crate) identities: Vec<Identity>,
    /// Authentication with SASL on the current link.
    pub(super) sasl: Sasl,
    pub(crate) ephemerals: BTreeSet<String>,
    pub(crate) attached: bool,
    /// The member that last attached the session, as far as the leader knows.
    pub(crate) owner: u32,
    pub(crate) events_sent: u64,
    /// Whether the next link that asks for the session is refused.
    pub(super) is_denied: bool,
}

impl Session {
    /// Creates a session without a link, which expires unless it is touched.
    pub(super) fn new(password: [u8; 16], timeout_ms: i32) -> Self {
        Self {
            password,
            timeout_ms,
            is_local: false,
            expires_at: 0,
            identities: Vec::new(),
            sasl: Sasl::default(),
            ephemerals: BTreeSet::new(),
            attached: false,
            owner: 0,
            events_sent: 0,
            is_denied: false,
        }
    }

    pub(crate) fn timeout(&self) -> Duration {
        wire_timeout(self.timeout_ms)
    }

    /// Adds an identity to the client, if all its identities then take up no more than `most` bytes.
    ///
    /// # Errors
    /// [`Code::AUTH_FAILED`] if they would take up more.
    pub(crate) fn add_identity(
        &mut self,
        identity: Identity,
        most: usize,
        notes: &mut Notes,
    ) -> Result<(), Code> {
        if !self.identities.contains(&identity) {
            let all = self.identities.iter().chain([&identity]);
            let bytes = all.map(|identity| acl::named(&identity.scheme, &identity.id)).sum();
            let admitted = notes.admit("auth_bytes_per_connection", bytes, most);
            admitted.map_err(|_| Code::AUTH_FAILED)?;
            self.identities.push(identity);
        }
        Ok(())
    }
}

/// Converts a granted timeout, which is never negative.
pub(crate) fn wire_timeout(timeout_ms: i32) -> Duration {
    Duration::from_millis(u64::from(timeout_ms.unsigned_abs()))
}
