use clap::{Args, Parser, Subcommand};
use docent_examples::Servers;

/// Two producers put jobs into a queue, three consumers work on them, each in a process of its own.
///
/// One consumer is killed (SIGKILL) while it works on a job. When its session has expired the job is back in
/// its place, and another consumer gets it. In the end every job was acknowledged once.
///
/// It starts a server of its own. DOCENT_CONNECT=host:port makes it use a real ensemble; a tickTime of 2 s is
/// assumed there. RUST_LOG=docent_queue=debug logs to stderr.
#[derive(Debug, Parser)]
#[command(name = "work_queue", disable_help_subcommand = true)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) role: Option<Role>,
}

/// Role of a process that this program started.
#[derive(Debug, Clone, Subcommand)]
pub(crate) enum Role {
    /// Puts so many jobs, and ends.
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
        /// How long a job takes.
        #[arg(long)]
        work_ms: u64,
    },
}

/// Where the queue is.
#[derive(Debug, Clone, Args)]
pub(crate) struct Seat {
    #[command(flatten)]
    pub(crate) servers: Servers,
    /// The queue's path.
    #[arg(long)]
    pub(crate) queue: String,
}

impl Seat {
    /// The arguments of a process here, in the role that `role` says.
    pub(crate) fn arguments(&self, role: &[&str]) -> Vec<String> {
        let role = role.iter().map(ToString::to_string);
        role.chain(self.servers.arguments()).chain(["--queue".to_owned(), self.queue.clone()]).collect()
    }
}
