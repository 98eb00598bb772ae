use crate::state::{HeldWrite, granted};
use bytes::Bytes;
use docent_proto::ConnectRequest;
use std::collections::BTreeMap;

/// Messages to the leader that wait in a follower that is cut off from it.
#[derive(Default)]
pub(crate) struct Pipe {
    /// Sessions that the follower received something from and had not relayed, as in
    /// [`Role::Follower`](super::members::Role).
    pub(super) heard_from: BTreeMap<i64, i32>,
    /// Requests to attach to a session, each with the granted timeout.
    pub(super) attaches: Vec<(ConnectRequest, i32)>,
    /// Writes on all links, in order of arrival.
    pub(super) writes: Vec<HeldWrite>,
    bytes: usize,
}

impl Pipe {
    /// Bytes that a message takes up besides its contents.
    pub(super) const MESSAGE: usize = 512;

    /// Creates a pipe that contains only the sessions not relayed yet.
    pub(super) fn new(heard_from: BTreeMap<i64, i32>) -> Self {
        Self { heard_from, ..Self::default() }
    }

    pub(crate) fn len(&self) -> usize {
        self.attaches.len() + self.writes.len()
    }

    /// Holds a request to attach to a session. A request for a new session is discarded, because no client
    /// would ever learn of that session.
    pub(super) fn attach(&mut self, request: &ConnectRequest, timeouts_ms: (i32, i32)) {
        if request.session_id != 0 {
            // Copies the password, so that the received frame is not kept in memory.
            let password = Bytes::copy_from_slice(&request.password);
            let request = ConnectRequest { password, ..request.clone() };
            self.bytes += Self::MESSAGE + request.password.len();
            let timeout_ms = granted(&request, timeouts_ms);
            self.attaches.push((request, timeout_ms));
        }
    }

    /// Holds a write.
    pub(super) fn write(&mut self, held: HeldWrite) {
        self.bytes += Self::MESSAGE + held.len();
        self.writes.push(held);
    }

    /// Returns the bytes of the messages, as the limit counts them.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }
}
