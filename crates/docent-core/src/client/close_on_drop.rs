use super::ConnectionState;
use crate::operation::Shared;
use crate::session::SessionEnd;
use crate::time::seconds;
use std::sync::Arc;

/// Ends the rest of a client together with the supervisor's task, however that task ends.
///
/// # On drop
/// If the supervisor ended in order, nothing is left to do. If it panicked, or its runtime was shut down, no
/// task keeps the session any more, and none would report that. Therefore guards are lost, pending operations
/// fail, and the client is closed.
pub(crate) struct CloseOnDrop {
    shared: Arc<Shared>,
    /// True once the supervisor has returned or panicked. A task that is dropped before was ended by its
    /// runtime, because no other part of the client ends it.
    ended: bool,
}

impl CloseOnDrop {
    pub(crate) fn new(shared: &Arc<Shared>) -> Self {
        Self { shared: Arc::clone(shared), ended: false }
    }

    /// Records that the supervisor has returned or panicked.
    pub(crate) fn supervisor_ended(&mut self) {
        self.ended = true;
    }

    fn log(&self) {
        let (shared, generation) = (&self.shared, self.shared.generation());
        if self.ended {
            // Event: The task that keeps the client's session panicked. The client is closed, its guards are
            // lost, and pending operations fail.
            // Action: Look for the panic message earlier in the log, and report it. Build a new client.
            tracing::error!(
                target: "docent::client",
                client = %shared.label,
                generation = generation.number,
                "the client's session task stopped unexpectedly; closing the client"
            );
        } else if generation.session.id() == 0 {
            // Event: The tokio runtime was shut down before the client was closed. The client had no session,
            // so no node is left.
            tracing::debug!(target: "docent::client", client = %shared.label, "runtime shut down before the client was closed");
        } else {
            // Event: The tokio runtime was shut down before the client was closed. The servers keep the
            // client's session, and with it the client's locks and registrations, for up to the session
            // timeout.
            // Action: Call `client.close().await` or `client.shutdown(…).await` before the program ends.
            tracing::warn!(
                target: "docent::client",
                client = %shared.label,
                generation = generation.number,
                session_timeout_seconds = seconds(generation.lease.timeout()),
                "runtime shut down before the client was closed; its locks and nodes remain until the session expires; call close().await first"
            );
        }
    }
}

impl Drop for CloseOnDrop {
    fn drop(&mut self) {
        let shared = &self.shared;
        if !shared.connection.borrow().is_final() {
            self.log();
            shared.connection.send_modify(|connection| connection.state = ConnectionState::Closed);
        }
        shared.closing.cancel();
        // The session's requests and watches have ended with the task that ran the session.
        shared.generation().end(SessionEnd::Closed);
        shared.finished.cancel();
    }
}
