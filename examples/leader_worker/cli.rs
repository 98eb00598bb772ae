use clap::{Args, Parser, Subcommand};
use docent_examples::Servers;

/// Two worker processes stand in an election, and only the leader does the job.
///
/// The leader is killed (SIGKILL) while it works; the other takes over when its session has expired. At the
/// end the other is asked to stop, and resigns.
///
/// It starts a server of its own. DOCENT_CONNECT=host:port makes it use a real ensemble; a tickTime of 2 s is
/// assumed there. RUST_LOG=docent_election=info logs to stderr.
#[derive(Debug, Parser)]
#[command(name = "leader_worker", disable_help_subcommand = true)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) role: Option<Role>,
}

/// Role of a process that this program started.
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
    #[command(flatten)]
    pub(crate) servers: Servers,
    /// The election's path.
    #[arg(long)]
    pub(crate) election: String,
    /// The node that the job writes.
    #[arg(long)]
    pub(crate) job: String,
}

impl Seat {
    /// The arguments of a worker here.
    pub(crate) fn worker(&self, name: &str) -> Vec<String> {
        let own = ["--name", name, "--election", &self.election, "--job", &self.job].map(str::to_owned);
        [vec!["worker".to_owned()], self.servers.arguments().into(), own.into()].concat()
    }
}
