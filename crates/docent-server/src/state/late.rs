//! Requests that come to the leader through a follower later than the client thinks.

use super::acl::Identity;
use super::{Effects, State, is_write};
use docent_proto::{ConnectRequest, OpCode, Request};

impl State {
    /// Gives a session to the links of one member from here on.
    pub(crate) fn set_owner(&mut self, session: i64, member: u32) {
        if let Some(session) = self.sessions.get_mut(session) {
            session.owner = member;
        }
    }

    /// True when the leader refuses a request because the session belongs to another member than the one it
    /// came through. ZooKeeper lets the end of a session pass, because an expiry is one too, and looks at the
    /// session of a multi with its first operation only.
    pub(crate) fn refuses_as_moved(&self, session: i64, member: u32, request: &Request) -> bool {
        let is_checked = match request {
            Request::CloseSession | Request::Auth { .. } => false,
            Request::Multi(ops) => !ops.is_empty(),
            _ => true,
        };
        is_checked && self.sessions.get(session).is_some_and(|session| session.owner != member)
    }

    /// Takes note that a request of a session that moved was refused. It takes up a transaction number if it
    /// was a write.
    pub(crate) fn refuse(&mut self, op: OpCode, now: i64) {
        if is_write(op) {
            self.next_zxid(now);
        }
    }

    /// Takes a follower's word that a session was taken up there, which may not be so any more.
    pub(crate) fn revalidate(&mut self, request: &ConnectRequest, timeout_ms: i32, member: u32, now: i64) {
        if self.attach(request, timeout_ms, now) {
            self.set_owner(request.session_id, member);
        }
    }

    /// Makes a write that waited in a follower, with the identities that its link had. The link may be gone.
    pub(crate) fn apply_late(&mut self, late: Late, member: u32, now: i64, effects: &mut Effects) {
        let Late { session: id, request, identities } = late;
        let is_refused = self.refuses_as_moved(id, member, &request);
        let Some(session) = self.sessions.get_mut(id).filter(|_| !is_refused) else {
            return self.refuse(request.op(), now);
        };
        let present = std::mem::replace(&mut session.identities, identities);
        self.apply(id, &request, now, effects);
        if let Some(session) = self.sessions.get_mut(id) {
            session.identities = present;
        }
    }

    /// A write as it waits in a follower whose state this is.
    pub(crate) fn keep(&self, session: i64, request: Request) -> Late {
        Late { session, request, identities: self.sessions.identities(session).to_vec() }
    }
}

/// A write of a link that may be gone by the time it is made.
pub(crate) struct Late {
    session: i64,
    request: Request,
    /// Identities of the client on that link.
    identities: Vec<Identity>,
}
