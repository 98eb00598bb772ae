//! Settings of a copy.

use clap::Args;
use docent::client::{Client, ClientBuilder};
use std::net::SocketAddr;
use std::num::ParseIntError;
use std::path::PathBuf;
use std::time::Duration;

/// How servers are reached, and how soon they end the session of a client that is silent.
#[derive(Debug, Clone, Args)]
pub struct Coordination {
    /// Where the servers are.
    #[arg(long)]
    pub connect: String,
    /// Path below which the shop keeps everything.
    #[arg(long, default_value = "/shop")]
    pub namespace: String,
    /// Session timeout that a client asks for.
    #[arg(long = "session-ms", value_parser = millis, default_value = "20000")]
    pub session_timeout: Duration,
    /// The servers' `tickTime`.
    #[arg(long = "tick-ms", value_parser = millis, default_value = "2000")]
    pub tick: Duration,
}

/// Settings of one copy.
#[derive(Debug, Clone, Args)]
pub struct Settings {
    /// Its servers.
    #[command(flatten)]
    pub coordination: Coordination,
    /// Its name: the same again when it is started again.
    #[arg(long)]
    pub name: String,
    /// Where it listens. Port 0 is any free one.
    #[arg(long, default_value = "127.0.0.1:0")]
    pub listen: SocketAddr,
    /// File of the database.
    #[arg(long)]
    pub database: PathBuf,
    /// Ends when its standard input does, so that it never outlives a process that started it.
    #[arg(long)]
    pub leash: bool,
}

fn millis(text: &str) -> Result<Duration, ParseIntError> {
    text.parse().map(Duration::from_millis)
}

impl Coordination {
    /// A client of these servers. Its operations give up before a caller would.
    pub fn client(&self, identity: &str) -> ClientBuilder {
        Client::builder(&self.connect)
            .namespace(&self.namespace)
            .session_timeout(self.session_timeout)
            .server_tick(self.tick)
            .operation_timeout(Duration::from_secs(5))
            .identity(identity)
    }

    /// These settings as arguments of a process.
    pub fn arguments(&self) -> [String; 8] {
        let millis = |time: Duration| time.as_millis().to_string();
        [
            "--connect".into(),
            self.connect.clone(),
            "--namespace".into(),
            self.namespace.clone(),
            "--session-ms".into(),
            millis(self.session_timeout),
            "--tick-ms".into(),
            millis(self.tick),
        ]
    }
}
