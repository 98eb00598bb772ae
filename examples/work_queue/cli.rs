use clap::{Args, Parser, Subcommand};
use docent_examples::Servers;

/// Two producers put jobs into a queue, and three consumers process them, each in its own process.
///
/// One consumer is killed (SIGKILL) while it works on a job. When its session has expired, the job is back in
/// its place, and another consumer gets it. At the end every job was done exactly once.
///
/// The example starts its own server. DOCENT_CONNECT=host:port makes it use a real ensemble, for which it
/// assumes a tickTime of 2 s. RUST_LOG=docent::queue=debug logs to stderr.
#[derive(Debug, Parser)]
#[command(name = "work_queue", disable_help_subcommand = true)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) role: Option<Role>,
}

/// Role of a process that this program started.
#[derive(Debug, Clone, Subcommand)]
pub(crate) enum Role {
    /// Puts `jobs` jobs, and ends.
    #[command(hide = true)]
    Producer {
        #[command(flatten)]
        seat: Seat,
        #[arg(long)]
        name: String,
        #[arg(long)]
        jobs: u32,
    },
    /// Works on jobs until its input ends.
    #[command(hide = true)]
    Consumer {
        #[command(flatten)]
        seat: Seat,
        #[arg(long)]
        name: String,
        /// Time that a job takes, in milliseconds.
        #[arg(long)]
        work_ms: u64,
    },
}

/// Queue to use.
#[derive(Debug, Clone, Args)]
pub(crate) struct Seat {
    #[command(flatten)]
    pub(crate) servers: Servers,
    /// Path of the queue.
    #[arg(long)]
    pub(crate) queue: String,
}

impl Seat {
    /// Returns the arguments of a process in the role `role`.
    pub(crate) fn arguments(&self, role: &[&str]) -> Vec<String> {
        let role = role.iter().map(ToString::to_string);
        role.chain(self.servers.arguments()).chain(["--queue".to_owned(), self.queue.clone()]).collect()
    }
}
