use super::ConnectionState;
use crate::operation::Shared;
use crate::session::SessionEnd;
use std::sync::Arc;

/// Guard in the supervisor's task that ends the rest of a client with it, however the task ends.
///
/// # On drop
/// Where the supervisor ended in order nothing is left to do. Where it panicked, or its runtime was shut
/// down, no task keeps the session from now on, and none would tell: guards are lost, pending operations
/// fail, and the client is closed.
pub(crate) struct Aftermath(pub(crate) Arc<Shared>);

impl Drop for Aftermath {
    fn drop(&mut self) {
        let shared = &self.0;
        let generation = shared.generation();
        if !shared.connection.borrow().is_final() {
            tracing::error!(
                client = %shared.label,
                generation = generation.number,
                "the task of the client's session is gone: it is closed"
            );
            shared.connection.send_modify(|connection| connection.state = ConnectionState::Closed);
        }
        shared.closing.cancel();
        // The session's requests and watches have ended with the task that ran it.
        generation.end(SessionEnd::Closed);
        shared.finished.cancel();
    }
}
