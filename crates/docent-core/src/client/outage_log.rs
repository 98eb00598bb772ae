//! Log messages that show the course of an outage: each names the client, the server and the cause.

use crate::guard::SessionGeneration;
use crate::operation::Shared;
use crate::session::{LinkError, SessionEnd};
use crate::time::seconds;

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
        down_seconds = status.down_for().map(seconds),
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
    let (status, last_error) = (&shared.ensemble.link_status, &shared.ensemble.last_error);
    // Event: The client's session has ended; the field `cause` says why. Its guards are lost, and the servers
    // delete its ephemeral nodes. The client opens a new session and re-creates kept nodes; if the servers
    // refused its credentials, it tries again after a pause.
    // Action: With `stood_still_seconds`, look for pauses of the process and for blocking code. Otherwise
    // look at the network, the servers' logs and the session timeout.
    tracing::warn!(
        target: "docent::client",
        client = %shared.label,
        server = status.server(),
        cause = cause_of(end, status.longest_stall().is_some(), last_error.get().as_deref()),
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
