//! Log messages that show the course of an outage: each names the client, the server and the cause.

use super::ConnectionStatus;
use crate::guard::SessionGeneration;
use crate::operation::Shared;
use crate::session::{LinkError, SessionEnd};
use crate::time::seconds;
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;
use tokio::time::{Instant, sleep_until, timeout};

/// Logs that the session was attached to a server, for the first time or again.
pub(super) fn log_connected(shared: &Shared, generation: &SessionGeneration) {
    let status = &shared.ensemble.link_status;
    // Event: The client has a session at a server. The field `generation` counts the client's sessions: the
    // same number as before means that the session survived and nothing was lost. `down_seconds` is the time
    // without a connection.
    tracing::info!(
        target: "docent::client",
        client = %shared.label,
        server = status.server(),
        generation = generation.number,
        session_id = %hex(generation),
        timeout_seconds = seconds(generation.lease.timeout()),
        down_seconds = status.lost_at().map(|at| seconds(at.elapsed())),
        "connected"
    );
}

/// Logs that a session lost its link.
pub(super) fn log_suspended(shared: &Shared, generation: &SessionGeneration) {
    let status = &shared.ensemble.link_status;
    let certain_for = generation.lease.deadline().since(generation.clock.now());
    let guards = generation.held.live();
    // Event: The connection to the server was lost; the field `cause` says why. The session may survive: the
    // client reconnects, and guards stay certain for the time in `certain_seconds`.
    // Action: If this happens often, look at the network and at the server named in the message.
    tracing::warn!(
        target: "docent::client",
        client = %shared.label,
        server = status.server(),
        cause = status.loss_cause(),
        generation = generation.number,
        session_id = %hex(generation),
        guards,
        certain_seconds = (guards > 0).then(|| seconds(certain_for)),
        "connection lost; session suspended"
    );
}

/// Logs that a session has ended without being closed by the client.
pub(super) fn log_loss(shared: &Shared, generation: &SessionGeneration, end: SessionEnd) {
    let status = &shared.ensemble.link_status;
    // Event: The client's session has ended; the field `cause` says why. Its guards are lost, and the servers
    // delete its ephemeral nodes. The client opens a new session and re-creates kept nodes; if the servers
    // refused its credentials, it tries again after a pause.
    // Action: With `stood_still_seconds`, look for pauses of the process and for blocking code. Otherwise
    // look at the network, the servers' logs and the session timeout.
    tracing::warn!(
        target: "docent::client",
        client = %shared.label,
        server = status.server(),
        cause = cause_of(end, status.longest_stall().is_some(), status.last_error().as_deref()),
        stood_still_seconds = status.longest_stall().map(seconds),
        generation = generation.number,
        session_id = %hex(generation),
        "session is lost; opening a new one"
    );
}

fn cause_of(end: SessionEnd, was_stalled: bool, last: Option<&LinkError>) -> String {
    match (end, last) {
        (SessionEnd::Expired, _) if was_stalled => {
            "the session expired while this process was paused or blocked".to_owned()
        }
        (SessionEnd::Expired, _) => "the session expired".to_owned(),
        (SessionEnd::Abandoned, Some(last)) => {
            format!("no server was reachable for too long; last error: {}", last.chain())
        }
        (SessionEnd::Abandoned, None) => "one of the client's own nodes cannot be deleted".to_owned(),
        (SessionEnd::RolledBack, _) => "the ensemble was restored from an older snapshot".to_owned(),
        (SessionEnd::AuthFailed, _) => "the servers refused the client's credentials".to_owned(),
        (SessionEnd::Closed, _) => "the session was closed".to_owned(),
    }
}

fn hex(generation: &SessionGeneration) -> String {
    format!("{:#x}", generation.session.id())
}

// Reminders of an outage, by a task that exists only during the outage.

/// Pause between two reminders of the same outage.
const REMINDER: Duration = Duration::from_secs(60);

/// Logs each minute that the client has no connection, until it has one. Only one task of a client does this.
pub(super) fn start_reminders(shared: &Arc<Shared>) {
    if !shared.reminding.swap(true, SeqCst) {
        shared.tasks.spawn_on(remind(Arc::clone(shared)), &shared.runtime);
    }
}

async fn remind(shared: Arc<Shared>) {
    loop {
        tokio::select! {
            () = remind_until_connected(&shared) => {}
            () = shared.closing.cancelled() => return,
        }
        shared.reminding.store(false, SeqCst);
        // The connection may have been lost again before the store, and no other task was started for that.
        if is_over(&shared.connection.borrow()) || shared.reminding.swap(true, SeqCst) {
            return;
        }
    }
}

/// Returns true if no reminder is due.
fn is_over(status: &ConnectionStatus) -> bool {
    status.is_attached() || status.is_final()
}

async fn remind_until_connected(shared: &Shared) {
    let mut connection = shared.connection.subscribe();
    let (began, generation) = (Instant::now(), shared.generation());
    let lost_before = generation.held.lost();
    while timeout(REMINDER, connection.wait_for(is_over)).await.is_err() {
        let cause = shared.ensemble.link_status.last_error();
        // Event: The client has had no connection for one more minute. `guards` counts the guards that it
        // still holds, and `guards_lost` those that were lost since the connection was lost.
        // Action: Check that the servers are running and reachable from this host. The field `cause`
        // names the last error.
        tracing::warn!(
            target: "docent::client",
            client = %shared.label,
            cause = cause.map(|cause| cause.chain()),
            down_seconds = began.elapsed().as_secs(),
            guards = generation.held.live(),
            guards_lost = generation.held.lost() - lost_before,
            "still without a connection; retrying"
        );
    }
}

/// Time after the loss of the connection in which a shutdown or close still waits for the servers to return.
/// A client finds another server of the ensemble faster than that.
const SERVERS_RETURN: Duration = Duration::from_secs(2);

/// Waits until the client has been without a connection for so long that its end no longer waits for what
/// needs a server. Resolves immediately for a client that never had a connection.
pub(super) async fn servers_unreachable(shared: &Shared) {
    let mut connection = shared.connection.subscribe();
    loop {
        let is_connected = connection.borrow_and_update().is_attached();
        let link = &shared.ensemble.link_status;
        // A client with a new link is connected once it has restored its watches and nodes.
        let is_attached = link.is_attached();
        let end = match link.lost_at() {
            _ if is_attached => Instant::now() + SERVERS_RETURN,
            Some(lost) => lost + SERVERS_RETURN,
            None => Instant::now(),
        };
        tokio::select! {
            // The client's own state has the sender, so the channel is open.
            _ = connection.changed() => {}
            () = sleep_until(end), if !is_connected => {
                if !is_attached {
                    return;
                }
            }
        }
    }
}
