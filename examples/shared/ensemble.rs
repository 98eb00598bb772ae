use clap::Args;
use docent::Client;
use docent::client::ClientBuilder;
use docent::server::Server;
use std::env;
use std::num::ParseIntError;
use std::time::Duration;

/// Environment variable with a real ensemble to use instead of the embedded server:
/// `host:port,host:port/chroot`.
const VARIABLE: &str = "DOCENT_CONNECT";

/// Address of the servers, and how soon they expire the session of a silent client. An example passes these
/// settings as arguments to the processes that it starts.
#[derive(Debug, Clone, Args)]
pub struct Servers {
    /// Connect string of the servers.
    #[arg(long = "connect")]
    pub connect_string: String,
    /// `tickTime` of the servers.
    #[arg(long = "tick-ms", value_parser = millis)]
    pub tick: Duration,
    /// Session timeout that a client requests.
    #[arg(long = "session-ms", value_parser = millis)]
    pub session_timeout: Duration,
}

fn millis(text: &str) -> Result<Duration, ParseIntError> {
    text.parse().map(Duration::from_millis)
}

impl Servers {
    /// Returns a builder for a client with short timeouts, so that an example does not take long. The
    /// defaults are better for a service.
    pub fn client(&self) -> ClientBuilder {
        Client::builder(&self.connect_string)
            .session_timeout(self.session_timeout)
            .server_tick(self.tick)
            .operation_timeout(Duration::from_secs(10))
    }

    /// Returns these settings as arguments of a process.
    pub fn arguments(&self) -> [String; 6] {
        let [tick, session] = [self.tick, self.session_timeout].map(|time| time.as_millis().to_string());
        [
            "--connect".into(),
            self.connect_string.clone(),
            "--tick-ms".into(),
            tick,
            "--session-ms".into(),
            session,
        ]
    }
}

/// Servers on which an example runs: those that `DOCENT_CONNECT` names, or an embedded server in this
/// process.
#[derive(Debug)]
pub struct Ensemble {
    /// Settings of the servers.
    pub servers: Servers,
    embedded: Option<Server>,
}

impl Ensemble {
    /// Starts an embedded server unless `DOCENT_CONNECT` names servers.
    ///
    /// # Errors
    /// If the variable is not valid Unicode, or the embedded server cannot be started.
    pub async fn from_env() -> anyhow::Result<Self> {
        match env::var(VARIABLE) {
            Ok(connect_string) => Ok(Self::real(connect_string)),
            Err(env::VarError::NotPresent) => Self::embedded().await,
            Err(error) => anyhow::bail!("{VARIABLE}: {error}"),
        }
    }

    /// A client cannot query the tick, so this uses the value of ZooKeeper's sample configuration.
    fn real(connect_string: String) -> Self {
        let tick = Duration::from_secs(2);
        Self { servers: Servers { connect_string, tick, session_timeout: tick * 4 }, embedded: None }
    }

    async fn embedded() -> anyhow::Result<Self> {
        let tick = Duration::from_millis(200);
        let server = Server::builder().tick(tick).start().await?;
        let connect_string = server.connect_string().to_owned();
        let session_timeout = Duration::from_secs(3);
        Ok(Self { servers: Servers { connect_string, tick, session_timeout }, embedded: Some(server) })
    }

    /// Returns a description of the servers in one line.
    pub fn description(&self) -> String {
        let Servers { connect_string, tick, session_timeout } = &self.servers;
        match self.embedded {
            Some(_) => format!("embedded server on {connect_string}, session timeout {session_timeout:?}"),
            None => format!(
                "{VARIABLE}={connect_string}, session timeout {session_timeout:?}, assuming tickTime {tick:?}"
            ),
        }
    }
}
