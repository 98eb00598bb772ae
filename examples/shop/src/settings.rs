//! Settings of a copy.

use clap::Args;
use docent::client::{Client, ClientBuilder};
use std::net::SocketAddr;
use std::num::ParseIntError;
use std::path::PathBuf;
use std::time::Duration;

/// Address of the servers, and how soon they expire the session of a silent client.
#[derive(Debug, Clone, Args)]
pub struct Coordination {
    /// Connect string of the servers
    #[arg(long)]
    pub connect: String,
    /// Path below which the shop stores everything
    #[arg(long, default_value = "/shop")]
    pub namespace: String,
    /// Session timeout that a client requests
    #[arg(long = "session-ms", value_parser = millis, default_value = "20000")]
    pub session_timeout: Duration,
    /// The servers' `tickTime`
    #[arg(long = "tick-ms", value_parser = millis, default_value = "2000")]
    pub tick: Duration,
}

/// Settings of one copy.
#[derive(Debug, Clone, Args)]
pub struct Settings {
    /// Settings of the servers.
    #[command(flatten)]
    pub coordination: Coordination,
    /// Name of the copy, which stays the same when the copy is restarted
    #[arg(long)]
    pub name: String,
    /// Address to listen on; port 0 selects a free port
    #[arg(long, default_value = "127.0.0.1:0")]
    pub listen: SocketAddr,
    /// File of the database
    #[arg(long)]
    pub database: PathBuf,
    /// Stop at the end of the standard input, so that the copy never outlives the process that started it
    #[arg(long)]
    pub leash: bool,
}

fn millis(text: &str) -> Result<Duration, ParseIntError> {
    text.parse().map(Duration::from_millis)
}

impl Coordination {
    /// Returns a builder for a client of these servers. Its operations time out before a caller's request
    /// would.
    pub fn client(&self, identity: &str) -> ClientBuilder {
        Client::builder(&self.connect)
            .namespace(&self.namespace)
            .session_timeout(self.session_timeout)
            .server_tick(self.tick)
            .operation_timeout(Duration::from_secs(5))
            .identity(identity)
    }

    /// Returns these settings as arguments of a process.
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
