//! Requests that come to the leader through a follower later than the client thinks.

use super::acl::Identity;
use super::effects::Effects;
use super::state::State;
use docent_proto::Request;

/// A write of a link that may be gone by the time it is made.
pub(crate) struct Late {
    session: i64,
    request: Request,
    /// Identities of the client on that link.
    identities: Vec<Identity>,
}

impl Late {
    /// A write as it waits in a follower that shows `state`.
    pub(crate) fn new(state: &State, session: i64, request: Request) -> Self {
        Self { session, request, identities: state.database.sessions.identities(session).to_vec() }
    }

    /// Makes the write in the leader's state, with the identities that its link had. The link may be gone.
    pub(crate) fn apply(self, state: &mut State, member: u32, now: i64, effects: &mut Effects) {
        let Self { session: id, request, identities } = self;
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
