//! Writes that reach the leader through a follower late, possibly after the client has given up on them.

use super::acl::{self, Identity};
use super::effects::Effects;
use super::state::State;
use bytes::Bytes;
use docent_proto::{OpCode, Reader, Request};

/// A write whose link may be closed by the time the write is applied.
pub(crate) struct HeldWrite {
    session: i64,
    op: OpCode,
    /// The received request, which is smaller than its decoded form.
    body: Bytes,
    /// Identities of the client on that link.
    identities: Vec<Identity>,
}

impl HeldWrite {
    /// Creates a held write in a follower that shows `state`.
    pub(crate) fn new(state: &State, session: i64, op: OpCode, body: &[u8]) -> Self {
        let identities = state.database.sessions.identities(session).to_vec();
        Self { session, op, body: Bytes::copy_from_slice(body), identities }
    }

    /// Returns the number of bytes that the value keeps.
    pub(crate) fn len(&self) -> usize {
        let named = |identity: &Identity| acl::named(&identity.scheme, &identity.id);
        self.body.len() + self.identities.iter().map(named).sum::<usize>()
    }

    /// Applies the write to the leader's state, with the identities of its link, which may be closed.
    pub(crate) fn apply(self, state: &mut State, member: u32, now: i64, effects: &mut Effects) {
        let Self { session: id, op, body, identities } = self;
        let Ok(request) = Request::read(op, &mut Reader::new(body)) else { return };
        let is_refused = state.refuses_as_moved(id, member, &request);
        let Some(session) = state.database.sessions.get_mut(id).filter(|_| !is_refused) else {
            return state.refuse(request.op(), now);
        };
        let present = std::mem::replace(&mut session.identities, identities);
        state.apply(id, &request, now, effects);
        if let Some(session) = state.database.sessions.get_mut(id) {
            session.identities = present;
        }
    }
}
