use super::ConnectionState;
use crate::operation::Shared;
use crate::session::SessionEnd;
use std::sync::Arc;

/// Ends the rest of a client together with the supervisor's task, however that task ends.
///
/// # On drop
/// If the supervisor ended in order, nothing is left to do. If it panicked, or its runtime was shut down, no
/// task keeps the session any more, and none would report that. Therefore guards are lost, pending operations
/// fail, and the client is closed.
pub(crate) struct CloseOnDrop(pub(crate) Arc<Shared>);

impl Drop for CloseOnDrop {
    fn drop(&mut self) {
        let shared = &self.0;
        let generation = shared.generation();
        if !shared.connection.borrow().is_final() {
            // Event: The task that keeps the client's session stopped before the client was closed, because
            // it panicked or its runtime was shut down. The client is closed, its guards are lost, and
            // pending operations fail.
            // Action: Look for a panic earlier in the log, and make sure that the runtime outlives the
            // client. Build a new client.
            tracing::error!(
                client = %shared.label,
                generation = generation.number,
                "the client's session task stopped unexpectedly; closing the client"
            );
            shared.connection.send_modify(|connection| connection.state = ConnectionState::Closed);
        }
        shared.closing.cancel();
        // The session's requests and watches have ended with the task that ran the session.
        generation.end(SessionEnd::Closed);
        shared.finished.cancel();
    }
}
