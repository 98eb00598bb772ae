use clap::{Args, Parser, Subcommand};
use docent_examples::Servers;

/// Two worker processes are candidates in an election, and only the leader does the job.
///
/// The leader is killed (SIGKILL) while it works; the other worker takes over when the leader's session has
/// expired. At the end that worker is asked to stop, and resigns.
///
/// The example starts its own server. DOCENT_CONNECT=host:port makes it use a real ensemble, for which it
/// assumes a tickTime of 2 s. RUST_LOG=docent::election=info logs to stderr.
#[derive(Debug, Parser)]
#[command(name = "leader_worker", disable_help_subcommand = true)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) role: Option<Role>,
}

/// Role of a process that this program started.
#[derive(Debug, Clone, Subcommand)]
pub(crate) enum Role {
    /// Campaigns, and works while it leads.
    #[command(hide = true)]
    Worker {
        #[command(flatten)]
        seat: Seat,
        #[arg(long)]
        name: String,
    },
}

/// Election to campaign in, and job to do.
#[derive(Debug, Clone, Args)]
pub(crate) struct Seat {
    #[command(flatten)]
    pub(crate) servers: Servers,
    /// Path of the election.
    #[arg(long)]
    pub(crate) election: String,
    /// Node that the job writes.
    #[arg(long)]
    pub(crate) job: String,
}

impl Seat {
    /// Returns the arguments of a worker process.
    pub(crate) fn worker(&self, name: &str) -> Vec<String> {
        let own = ["--name", name, "--election", &self.election, "--job", &self.job].map(str::to_owned);
        [vec!["worker".to_owned()], self.servers.arguments().into(), own.into()].concat()
    }
}
