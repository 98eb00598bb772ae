use clap::Args;
use docent::Client;
use docent::client::ClientBuilder;
use docent::server::Server;
use std::env;
use std::num::ParseIntError;
use std::time::Duration;

/// Names a real ensemble to use in place of the embedded server: `host:port,host:port/chroot`.
const VARIABLE: &str = "DOCENT_CONNECT";

/// How servers are reached, and how soon they end the session of a client that is silent. An example tells it
/// the processes that it starts, as arguments.
#[derive(Debug, Clone, Args)]
pub struct Servers {
    /// Where the servers are.
    #[arg(long = "connect")]
    pub connect_string: String,
    /// Their `tickTime`.
    #[arg(long = "tick-ms", value_parser = millis)]
    pub tick: Duration,
    /// Session timeout that a client asks for.
    #[arg(long = "session-ms", value_parser = millis)]
    pub session_timeout: Duration,
}

fn millis(text: &str) -> Result<Duration, ParseIntError> {
    text.parse().map(Duration::from_millis)
}

impl Servers {
    /// A client with short timeouts, so that an example does not take long. The defaults are better for a
    /// service.
    pub fn client(&self) -> ClientBuilder {
        Client::builder(&self.connect_string)
            .session_timeout(self.session_timeout)
            .server_tick(self.tick)
            .operation_timeout(Duration::from_secs(10))
    }

    /// These servers as arguments of a process.
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

/// The servers an example runs on: the ones that `DOCENT_CONNECT` names, or one that lives in this process.
#[derive(Debug)]
pub struct Ensemble {
    /// How they are reached.
    pub servers: Servers,
    embedded: Option<Server>,
}

impl Ensemble {
    /// Starts a server unless `DOCENT_CONNECT` names some.
    ///
    /// # Errors
    /// When the variable is no text, or no server can be started.
    pub async fn from_env() -> anyhow::Result<Self> {
        match env::var(VARIABLE) {
            Ok(connect_string) => Ok(Self::real(connect_string)),
            Err(env::VarError::NotPresent) => Self::embedded().await,
            Err(error) => anyhow::bail!("{VARIABLE}: {error}"),
        }
    }

    /// A client cannot ask for the tick, so this takes what ZooKeeper's sample configuration has.
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

    /// One line about it, for people.
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
