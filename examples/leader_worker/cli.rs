use crate::shared::ensemble::Servers;
use clap::{Args, Parser, Subcommand};
use std::time::Duration;

/// Two worker processes stand in an election, and only the leader does the job.
///
/// The leader is killed (SIGKILL) while it works; the other takes over when its session has expired. At the end the other is
/// asked to stop, and resigns.
///
/// It starts a server of its own. DOCENT_CONNECT=host:port makes it use a real ensemble; a tickTime of 2 s is assumed there.
/// RUST_LOG=docent_election=info logs to stderr.
#[derive(Debug, Parser)]
#[command(name = "leader_worker", disable_help_subcommand = true)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) role: Option<Role>,
}

/// What a process is that this program started.
#[derive(Debug, Clone, Subcommand)]
pub(crate) enum Role {
    /// Stands, and works while it leads.
    #[command(hide = true)]
    Worker {
        #[command(flatten)]
        seat: Seat,
        #[arg(long)]
        name: String,
    },
}

/// Where to stand.
#[derive(Debug, Clone, Args)]
pub(crate) struct Seat {
    #[arg(long)]
    pub(crate) connect: String,
    #[arg(long)]
    pub(crate) tick_ms: u64,
    #[arg(long)]
    pub(crate) session_ms: u64,
    /// The election's path.
    #[arg(long)]
    pub(crate) election: String,
    /// The node that the job writes.
    #[arg(long)]
    pub(crate) job: String,
}

impl Seat {
    pub(crate) fn servers(&self) -> Servers {
        Servers {
            connect_string: self.connect.clone(),
            tick: Duration::from_millis(self.tick_ms),
            session_timeout: Duration::from_millis(self.session_ms),
        }
    }
}
