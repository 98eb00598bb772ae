use crate::shared::ensemble::Servers;
use clap::{Args, Parser, Subcommand};
use std::path::PathBuf;
use std::time::Duration;

/// Several processes count in one file under one lock.
///
/// Each process adds 1 to the number in a plain temporary file, again and again: it reads, adds and writes, with nothing but
/// Docent's mutex to keep the others away. One more process is killed (SIGKILL) while it holds the lock; the others go on
/// when its session has expired. At the end the number in the file must be the sum of what the processes acknowledged.
///
/// It starts a server of its own. DOCENT_CONNECT=host:port makes it use a real ensemble; a tickTime of 2 s is assumed there.
/// RUST_LOG=docent_core=debug logs to stderr.
#[derive(Debug, Parser)]
#[command(name = "counter", override_usage = "counter [OPTIONS]", disable_help_subcommand = true)]
pub(crate) struct Cli {
    /// Processes that count, without the one that is killed.
    #[arg(long, value_name = "NUMBER", default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=64))]
    pub(crate) processes: u32,

    /// How often each process adds 1.
    #[arg(long, value_name = "NUMBER", default_value_t = 200, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) increments: u32,

    #[command(subcommand)]
    pub(crate) role: Option<Role>,
}

/// What a process is that this program started.
#[derive(Debug, Clone, Subcommand)]
pub(crate) enum Role {
    /// Counts.
    #[command(hide = true)]
    Worker {
        #[command(flatten)]
        job: Job,
        #[arg(long)]
        increments: u32,
    },
    /// Acquires the lock and waits to be killed.
    #[command(hide = true)]
    Victim {
        #[command(flatten)]
        job: Job,
    },
}

/// Where to count, and under which lock.
#[derive(Debug, Clone, Args)]
pub(crate) struct Job {
    #[arg(long)]
    pub(crate) connect: String,
    #[arg(long)]
    pub(crate) tick_ms: u64,
    #[arg(long)]
    pub(crate) session_ms: u64,
    /// The lock's path.
    #[arg(long)]
    pub(crate) lock: String,
    #[arg(long)]
    pub(crate) file: PathBuf,
}

impl Job {
    pub(crate) fn servers(&self) -> Servers {
        Servers {
            connect_string: self.connect.clone(),
            tick: Duration::from_millis(self.tick_ms),
            session_timeout: Duration::from_millis(self.session_ms),
        }
    }
}
