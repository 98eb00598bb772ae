use crate::state::{Late, granted};
use bytes::Bytes;
use docent_proto::ConnectRequest;
use std::collections::BTreeMap;

/// Messages to the leader that wait in a follower that is cut off from it.
#[derive(Default)]
pub(crate) struct Pipe {
    /// Sessions it heard from, as those of a follower that is not cut off.
    pub(super) heard: BTreeMap<i64, i32>,
    /// Sessions that were asked for, each with the timeout granted.
    pub(super) attaches: Vec<(ConnectRequest, i32)>,
    /// Writes in the order they came, over all links.
    pub(super) writes: Vec<Late>,
    bytes: usize,
}

impl Pipe {
    /// Bytes that a message takes up besides its own.
    pub(super) const MESSAGE: usize = 512;

    /// A pipe in which only the sessions not yet relayed wait.
    pub(super) fn new(heard: BTreeMap<i64, i32>) -> Self {
        Self { heard, ..Self::default() }
    }

    pub(crate) fn len(&self) -> usize {
        self.attaches.len() + self.writes.len()
    }

    /// Takes a session that was asked for over a link. A new session is not opened later: no client would
    /// ever know of it.
    pub(super) fn attach(&mut self, request: &ConnectRequest, timeouts_ms: (i32, i32)) {
        if request.session_id != 0 {
            // The bytes that came in are not kept with it.
            let password = Bytes::copy_from_slice(&request.password);
            let request = ConnectRequest { password, ..request.clone() };
            self.bytes += Self::MESSAGE + request.password.len();
            let timeout_ms = granted(&request, timeouts_ms);
            self.attaches.push((request, timeout_ms));
        }
    }

    /// Takes a write.
    pub(super) fn write(&mut self, late: Late) {
        self.bytes += Self::MESSAGE + late.len();
        self.writes.push(late);
    }

    /// Bytes of the messages, as their limit counts them.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }
}
