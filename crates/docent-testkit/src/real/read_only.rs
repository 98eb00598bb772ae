use super::java::Java;
use super::server::{Membership, RealServer, blocking};
use crate::StartError;
use crate::options::ServerOptions;
use crate::ports::Port;

/// Ports of the members that never run: nothing listens there.
const ABSENT: &str = "server.2=127.0.0.1:1:2\nserver.3=127.0.0.1:3:4\n";

impl RealServer {
    /// Starts the first of three servers alone, which is read-only for want of a quorum. It gives out
    /// sessions of its own, without which ZooKeeper 3.8 can open none in that mode.
    ///
    /// # Errors
    /// As [`start`](Self::start).
    ///
    /// # Cancel safety
    /// As [`start`](Self::start).
    #[doc(hidden)]
    pub async fn start_read_only() -> Result<Self, StartError> {
        blocking(|| {
            let ports = [Port::claim()?, Port::claim()?];
            let [quorum, votes] = ports.each_ref().map(|port| port.address().port());
            let members = format!(
                "initLimit=5\nsyncLimit=5\nlocalSessionsEnabled=true\nserver.1=127.0.0.1:{quorum}:{votes}\n{ABSENT}"
            );
            let membership = Membership { id: 1, members, _ports: ports };
            let options = ServerOptions::default().property("readonlymode.enabled", "true");
            let server = Self::prepare(&Java::find()?, &options, Some(membership))?;
            server.launch()?;
            server.until_it_serves()?;
            Ok(server)
        })
        .await
    }
}
