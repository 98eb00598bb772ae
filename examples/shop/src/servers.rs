//! The servers of a show: those that `DOCENT_CONNECT` names, or one that lives in this process.

use crate::settings::Coordination;
use docent::server::Server;
use std::env::{self, VarError};
use std::process;
use std::time::{Duration, SystemTime};

const VARIABLE: &str = "DOCENT_CONNECT";

/// Servers to run on.
#[derive(Debug)]
pub struct Servers {
    /// How they are reached.
    pub coordination: Coordination,
    /// The one that can be stopped.
    pub embedded: Option<Server>,
}

impl Servers {
    /// Starts a server unless the variable names some.
    ///
    /// # Errors
    /// When the variable is no text, or no server can be started.
    pub async fn from_env() -> anyhow::Result<Self> {
        match env::var(VARIABLE) {
            // A client cannot ask for the tick: this is what ZooKeeper's sample configuration has.
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

    /// One line about them, for people.
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

/// A path that no other run uses.
fn own_path() -> String {
    let since_epoch = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    format!("/docent-shop-{}-{:x}", process::id(), since_epoch.as_millis())
}
