use crate::session::LinkError;
use crate::telemetry::Instruments;
use crate::time::seconds;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// State of a client's own link, for its log messages: the server, the reason why the last link was lost, and
/// how long the process was paused.
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
        (state.server, state.is_attached) = (Some(server), true);
        (state.unreachable, state.longest_stall) = (false, None);
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
    pub(crate) fn unreachable(&self, cause: Option<&LinkError>) {
        if !std::mem::replace(&mut self.lock().unreachable, true) {
            let cause = cause.map(LinkError::chain).unwrap_or_default();
            // Event: The client tried all servers and could not connect to any of them. It keeps retrying
            // until a server answers; operations wait until their timeout. Logged once per outage.
            // Action: Check that the servers are running and reachable from this host. The field `cause`
            // names the last error.
            tracing::warn!(target: "docent::session", client = %self.client(), cause, "cannot reach any server; retrying");
        }
    }

    /// Records that the session task was polled `late` after the time it had asked for.
    pub(crate) fn record_stall(&self, late: Duration) {
        let mut state = self.lock();
        state.longest_stall = state.longest_stall.max(Some(late));
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

    /// Returns the time since the last attached link was lost, or `None` if no link was lost yet.
    pub(crate) fn down_for(&self) -> Option<Duration> {
        self.lost_at().map(|at| at.elapsed())
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
