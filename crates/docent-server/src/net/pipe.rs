use crate::state::{Late, State, granted};
use docent_proto::{ConnectRequest, Request};
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
}

impl Pipe {
    /// A pipe in which only the sessions not yet relayed wait.
    pub(super) fn new(heard: BTreeMap<i64, i32>) -> Self {
        Self { heard, ..Self::default() }
    }

    pub(crate) fn len(&self) -> usize {
        self.attaches.len() + self.writes.len()
    }

    /// Takes a session that was asked for over a link. A new session is not opened later: no client would
    /// ever know of it.
    pub(super) fn attach(&mut self, request: ConnectRequest, timeouts_ms: (i32, i32)) {
        if request.session_id != 0 {
            let timeout_ms = granted(&request, timeouts_ms);
            self.attaches.push((request, timeout_ms));
        }
    }

    /// Takes a write. `state` is the follower's, which knows its client.
    pub(super) fn write(&mut self, state: &State, session: i64, request: Request) {
        self.writes.push(Late::new(state, session, request));
    }
}
