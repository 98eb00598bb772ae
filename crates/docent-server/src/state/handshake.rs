use super::State;
use super::acl::Identity;
use super::commit::Commit;
use super::session::wire_timeout;
use crate::journal::TransactionKind;
use bytes::Bytes;
use docent_proto::{ConnectRequest, ConnectResponse};
use std::net::IpAddr;

/// Outcome for a link that asked for a session.
#[derive(Debug)]
pub(crate) enum Handshake {
    /// It serves this session.
    Attached(ConnectResponse),
    /// It is told that the session is gone, then closed.
    Gone(ConnectResponse),
    /// It is closed without a word.
    Refused(&'static str),
}

impl State {
    /// Opens the session a link asks for, or attaches the link to it, with a timeout within `timeouts_ms`.
    pub(crate) fn connect(
        &mut self,
        request: &ConnectRequest,
        timeouts_ms: (i32, i32),
        peer: IpAddr,
        now: i64,
    ) -> Handshake {
        if request.last_zxid_seen > self.zxid {
            return Handshake::Refused("the client has seen newer transactions than this server has");
        }
        let timeout_ms = granted(request, timeouts_ms);
        let id = if request.session_id == 0 {
            if self.sessions.len() >= self.config.limits.sessions {
                return Handshake::Refused("there are as many sessions as the limit allows");
            }
            self.open_session(timeout_ms, now)
        } else {
            request.session_id
        };
        if request.session_id != 0 && !self.attach(request, timeout_ms, now) {
            return Handshake::Gone(ConnectResponse {
                timeout_ms: 0,
                session_id: 0,
                password: Bytes::from_static(&[0; 16]),
                read_only: request.read_only.map(|_| false),
            });
        }
        let Some(session) = self.sessions.get_mut(id) else {
            return Handshake::Refused("the session is gone");
        };
        session.attached = true;
        session.identities = vec![Identity { scheme: "ip".into(), id: peer.to_string() }];
        Handshake::Attached(ConnectResponse {
            timeout_ms,
            session_id: id,
            password: Bytes::copy_from_slice(&session.password),
            read_only: request.read_only.map(|_| false),
        })
    }

    fn open_session(&mut self, timeout_ms: i32, now: i64) -> i64 {
        let mut password = [0; 16];
        self.random.fill(&mut password);
        let id = self.sessions.open(timeout_ms, password, now);
        let commit = Commit { zxid: self.next_zxid(now), session: id, now };
        self.record(commit, TransactionKind::SessionOpened { timeout: wire_timeout(timeout_ms) }, "", 0);
        id
    }

    /// Takes over an existing session; false when there is none with that id and password.
    pub(super) fn attach(&mut self, request: &ConnectRequest, timeout_ms: i32, now: i64) -> bool {
        let Some(session) = self.sessions.get_mut(request.session_id) else { return false };
        if request.password != session.password.as_slice() {
            return false;
        }
        session.timeout_ms = timeout_ms;
        self.sessions.touch(request.session_id, timeout_ms, now);
        true
    }

    /// Takes note that the link of a session is gone, and its watches with it.
    pub(crate) fn detach(&mut self, id: i64) {
        self.watches.remove_session(id);
        if let Some(session) = self.sessions.get_mut(id) {
            session.attached = false;
            session.identities.clear();
        }
    }
}

/// The timeout that a link is granted.
pub(crate) fn granted(request: &ConnectRequest, (min, max): (i32, i32)) -> i32 {
    request.timeout_ms.clamp(min, max)
}
