use crate::client::core::Core;
use crate::client::state::ConnectionState;
use crate::session::SessionEnd;
use std::sync::Arc;

/// End of whatever rests on the supervisor of a client, however that ends.
///
/// # On drop
/// Where the supervisor ended in order nothing is left to do. Where it panicked, or its runtime was shut down, nobody would keep the
/// session from now on, and nobody would tell: guards are lost, what waits fails, and the client is closed.
pub(crate) struct Aftermath(pub(crate) Arc<Core>);

impl Drop for Aftermath {
    fn drop(&mut self) {
        let core = &self.0;
        let epoch = core.epoch();
        if !core.connection.borrow().is_final() {
            tracing::error!(epoch = epoch.number, "the task of the client's session is gone: it is closed");
            core.connection.send_modify(|connection| connection.state = ConnectionState::Closed);
        }
        core.closing.cancel();
        // Its requests and watches have ended with the task that ran it.
        epoch.end(SessionEnd::Closed);
        core.finished.cancel();
    }
}
