use crate::session::LinkError;
use crate::session::connect_string::ServerAddress;
use crate::telemetry::Instruments;
use crate::time::seconds;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// State of a client's own link, for its log messages and errors: the server, the reasons why there is no
/// link or why the last one was lost, and how long the process was paused.
#[derive(Debug, Clone)]
pub(crate) struct LinkStatus {
    pub(crate) instruments: Arc<Instruments>,
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    /// Server of the last attached link.
    server: Option<String>,
    /// True while a link is attached.
    is_attached: bool,
    /// Reason why the last attached link was lost.
    loss: Option<LinkError>,
    /// Time when the last attached link was lost, or its session ended.
    lost_at: Option<Instant>,
    /// Longest delay of the session task since the last attached link.
    longest_stall: Option<Duration>,
    /// True once the log has reported that no server is reachable, until one is.
    unreachable: bool,
    /// Time since which servers have refused this client, across all of its sessions.
    refused_since: Option<Instant>,
    /// Last reason why there is no link.
    error: Option<Arc<LinkError>>,
    /// The step that the client currently waits for.
    step: Option<Arc<LinkError>>,
    /// The last error of each server or, if there was none yet, the step that the dialer waits for.
    by_server: HashMap<ServerAddress, Arc<LinkError>>,
}

impl LinkStatus {
    pub(crate) fn new(instruments: Arc<Instruments>) -> Self {
        Self { instruments, state: Arc::default() }
    }

    /// Returns a separate status for an auxiliary link, which is never logged.
    pub(super) fn unlogged(&self) -> Self {
        let unlogged = Self::new(Arc::clone(&self.instruments));
        unlogged.lock().unreachable = true;
        unlogged
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the label of the client.
    pub(crate) fn client(&self) -> &Arc<str> {
        self.instruments.client()
    }

    /// Records that the session was attached at `server`.
    pub(crate) fn attached(&self, server: String) {
        let mut state = self.lock();
        let (loss, lost_at) = (state.loss.take(), state.lost_at);
        *state = State { server: Some(server), is_attached: true, loss, lost_at, ..State::default() };
    }

    /// Records why there is no link to `server`, or to any server.
    pub(crate) fn failed(&self, server: Option<&ServerAddress>, error: LinkError) {
        let (mut state, error) = (self.lock(), Arc::new(error));
        state.by_server.extend(server.map(|server| (server.clone(), Arc::clone(&error))));
        state.error = Some(error);
    }

    /// Records the step that the client waits for from now on, at `server` or at no particular one. An error
    /// of an earlier round is more informative, and stays.
    pub(crate) fn waits_for(&self, server: Option<&ServerAddress>, step: LinkError) {
        let (mut state, step) = (self.lock(), Arc::new(step));
        if let Some(server) = server {
            let known = state.by_server.entry(server.clone()).or_insert_with(|| Arc::clone(&step));
            if known.is_step() {
                *known = Arc::clone(&step);
            }
        }
        state.step = Some(step);
    }

    /// Returns the last reason why there is no link.
    pub(crate) fn last_error(&self) -> Option<Arc<LinkError>> {
        self.lock().error.clone()
    }

    /// Returns the last error or, if there was none yet, the step that the client waits for.
    pub(crate) fn no_link(&self) -> Option<Arc<LinkError>> {
        let state = self.lock();
        state.error.as_ref().or(state.step.as_ref()).cloned()
    }

    /// Returns each of `servers` with the reason why there is no link to it, for an error's text. Returns
    /// `None` if there is a link, or no reason is known yet.
    pub(crate) fn no_link_to_each(&self, servers: &[ServerAddress]) -> Option<String> {
        let state = self.lock();
        if state.by_server.is_empty() {
            return state.error.as_ref().or(state.step.as_ref()).map(|error| error.chain());
        }
        let reasons = servers.iter().map(|server| match state.by_server.get(server) {
            Some(error) => format!("{server}: {}", error.reason()),
            None => format!("{server}: not tried yet"),
        });
        Some(reasons.collect::<Vec<_>>().join(", "))
    }

    /// Records that a server refused this client without a reply.
    pub(super) fn refused(&self) {
        self.lock().refused_since.get_or_insert_with(Instant::now);
    }

    /// Records that the servers were asked and were not restored from an older snapshot.
    pub(in crate::session) fn not_rolled_back(&self) {
        self.lock().refused_since = None;
    }

    /// Returns true if servers have refused this client for two session timeouts: they may have been restored
    /// from an older snapshot.
    pub(in crate::session) fn suspects_rollback(&self, session_timeout: Duration) -> bool {
        self.lock().refused_since.is_some_and(|since| since.elapsed() >= session_timeout * 2)
    }

    /// Records that an attached link was lost.
    pub(crate) fn lost(&self, error: LinkError) {
        self.ended();
        self.lock().loss = Some(error);
    }

    /// Records that the session ended on an attached link, which is closed.
    pub(crate) fn ended(&self) {
        let mut state = self.lock();
        (state.lost_at, state.is_attached) = (Some(Instant::now()), false);
    }

    /// Records that a round through all servers produced no link. Logged once, until there is a link.
    pub(super) fn unreachable(&self) {
        if !std::mem::replace(&mut self.lock().unreachable, true) {
            let cause = self.last_error().map(|error| error.chain()).unwrap_or_default();
            // Event: The client tried all servers and could not connect to any of them. It keeps retrying
            // until a server answers; operations wait until their timeout. Logged once per outage.
            // Action: Check that the servers are running and reachable from this host. The field `cause`
            // names the last error.
            tracing::warn!(target: "docent::session", client = %self.client(), cause, "cannot reach any server; retrying");
        }
    }

    /// Records that the session task was polled `late` after the time it had asked for.
    pub(crate) fn record_stall(&self, late: Duration) {
        {
            // Unlocked before the event, because a subscriber may ask for the client's health.
            let mut state = self.lock();
            state.longest_stall = state.longest_stall.max(Some(late));
        }
        // Event: The task that keeps the session alive was polled later than it should have been, by the time
        // in `late_seconds`. Sessions and locks are lost if such delays exceed the session timeout.
        // Action: Check for pauses of the process or machine, CPU limits, and blocking code in async tasks. A
        // dedicated session thread protects against blocking code.
        tracing::warn!(
            target: "docent::session",
            client = %self.client(),
            late_seconds = seconds(late),
            "the session task was polled late; was the process suspended, or is blocking code running on the runtime?"
        );
    }

    /// Returns the server of the last attached link.
    pub(crate) fn server(&self) -> String {
        self.lock().server.clone().unwrap_or_else(|| "unknown".to_owned())
    }

    /// Returns the reason why the last attached link was lost.
    pub(crate) fn loss_cause(&self) -> String {
        self.lock().loss.as_ref().map_or_else(|| "unknown".to_owned(), LinkError::chain)
    }

    /// Returns when the last attached link was lost, or `None` if no link was lost yet.
    pub(crate) fn lost_at(&self) -> Option<Instant> {
        self.lock().lost_at
    }

    /// Returns whether a link is attached.
    pub(crate) fn is_attached(&self) -> bool {
        self.lock().is_attached
    }

    /// Returns the longest delay of the session task since the session was last attached.
    pub(crate) fn longest_stall(&self) -> Option<Duration> {
        self.lock().longest_stall
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io;

    #[test]
    fn each_server_has_its_last_error_or_else_its_current_step() {
        let servers = ServerAddress::all_of("zk1,zk2,zk3,zk4").unwrap();
        let status = LinkStatus::new(Arc::new(Instruments::new(&"1".into())));
        let name = |i: usize| servers[i].to_string();
        assert_eq!(status.no_link_to_each(&servers), None);
        for server in [0, 1] {
            status.waits_for(Some(&servers[server]), LinkError::Connecting { server: name(server) });
        }
        let refused = Arc::new(io::ErrorKind::ConnectionRefused.into());
        status.failed(Some(&servers[0]), LinkError::Dial { server: name(0), source: refused });
        status.waits_for(Some(&servers[0]), LinkError::Connecting { server: name(0) });
        status.waits_for(Some(&servers[1]), LinkError::Greeting { server: name(1) });
        status.failed(Some(&servers[2]), LinkError::DialTimeout { server: name(2), seconds: 2.0 });
        assert_eq!(
            status.no_link_to_each(&servers).unwrap(),
            "zk1:2181: connection refused, zk2:2181: connected, but no answer to the handshake yet, \
             zk3:2181: no connection within 2.000 s, zk4:2181: not tried yet"
        );
        status.attached(name(0));
        assert_eq!(status.no_link_to_each(&servers), None);
    }
}
