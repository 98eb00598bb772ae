use super::java::Java;
use super::server::{Membership, RealServer, blocking};
use crate::StartError;
use crate::options::ServerOptions;
use crate::ports::Port;

/// Members that never run, on ports on which nothing listens.
const ABSENT: &str = "server.2=127.0.0.1:1:2\nserver.3=127.0.0.1:3:4\n";

impl RealServer {
    /// Starts only the first of three servers, which is read-only because it has no quorum.
    ///
    /// # Errors
    /// See [`start`](Self::start).
    ///
    /// # Cancel safety
    /// See [`start`](Self::start).
    #[doc(hidden)]
    pub async fn start_read_only() -> Result<Self, StartError> {
        blocking(|| {
            let ports = [Port::claim()?, Port::claim()?];
            let [quorum, votes] = ports.each_ref().map(|port| port.address().port());
            let members = format!("initLimit=5\nsyncLimit=5\nserver.1=127.0.0.1:{quorum}:{votes}\n{ABSENT}");
            let membership = Membership { id: 1, members, _ports: ports };
            let options = ServerOptions::default().read_only_mode(true);
            let server = Self::prepare(&Java::find()?, &options, Some(membership))?;
            server.launch()?;
            server.until_it_serves()?;
            Ok(server)
        })
        .await
    }
}
