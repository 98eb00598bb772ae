//! Servers of a show: those that `DOCENT_CONNECT` names, or an embedded server in this process.

use crate::settings::Coordination;
use docent::server::Server;
use std::env::{self, VarError};
use std::process;
use std::time::{Duration, SystemTime};

const VARIABLE: &str = "DOCENT_CONNECT";

/// Servers to run on.
#[derive(Debug)]
pub struct Servers {
    /// Settings of the servers.
    pub coordination: Coordination,
    /// The embedded server, which the show can stop.
    pub embedded: Option<Server>,
}

impl Servers {
    /// Starts an embedded server unless the variable names servers.
    ///
    /// # Errors
    /// If the variable is not valid Unicode, or the embedded server cannot be started.
    pub async fn from_env() -> anyhow::Result<Self> {
        match env::var(VARIABLE) {
            // A client cannot query the tick, so this uses the value of ZooKeeper's sample configuration.
            Ok(connect) => Ok(Self::with(connect, Duration::from_secs(2), Duration::from_secs(8), None)),
            Err(VarError::NotPresent) => {
                let tick = Duration::from_millis(200);
                let server = Server::builder().tick(tick).start().await?;
                let connect = server.connect_string().to_owned();
                Ok(Self::with(connect, tick, Duration::from_secs(3), Some(server)))
            }
            Err(error) => anyhow::bail!("{VARIABLE}: {error}"),
        }
    }

    fn with(connect: String, tick: Duration, session_timeout: Duration, embedded: Option<Server>) -> Self {
        Self {
            coordination: Coordination { connect, namespace: own_path(), session_timeout, tick },
            embedded,
        }
    }

    /// Returns a description of the servers in one line.
    pub fn description(&self) -> String {
        let Coordination { connect, session_timeout, tick, .. } = &self.coordination;
        match self.embedded {
            Some(_) => format!("embedded server on {connect}, session timeout {session_timeout:?}"),
            None => format!(
                "{VARIABLE}={connect}, session timeout {session_timeout:?}, assuming tickTime {tick:?}"
            ),
        }
    }
}

/// Returns a path that no other run uses.
fn own_path() -> String {
    let since_epoch = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    format!("/docent-shop-{}-{:x}", process::id(), since_epoch.as_millis())
}
