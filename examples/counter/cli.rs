use clap::{Args, Parser, Subcommand};
use docent_examples::Servers;
use std::ffi::OsString;
use std::path::PathBuf;

/// Several processes count in one file under one lock.
///
/// Each process repeatedly adds 1 to the number in a plain temporary file: it reads, adds and writes, and
/// only Docent's mutex keeps the other processes out. One more process is killed (SIGKILL) while it holds the
/// lock; the others continue when its session has expired. At the end the number in the file must be the sum
/// of what the processes acknowledged.
///
/// The example starts its own server. DOCENT_CONNECT=host:port makes it use a real ensemble, for which it
/// assumes a tickTime of 2 s. RUST_LOG=docent=debug logs to stderr.
#[derive(Debug, Parser)]
#[command(name = "counter", override_usage = "counter [OPTIONS]", disable_help_subcommand = true)]
pub(crate) struct Cli {
    /// Number of processes that count, without the one that is killed
    #[arg(long, value_name = "NUMBER", default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=64))]
    pub(crate) processes: u32,

    /// Number of times that each process adds 1
    #[arg(long, value_name = "NUMBER", default_value_t = 200, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) increments: u32,

    #[command(subcommand)]
    pub(crate) role: Option<Role>,
}

/// Role of a process that this program started.
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

/// File to count in, and lock to count under.
#[derive(Debug, Clone, Args)]
pub(crate) struct Job {
    #[command(flatten)]
    pub(crate) servers: Servers,
    /// Path of the lock.
    #[arg(long)]
    pub(crate) lock: String,
    #[arg(long)]
    pub(crate) file: PathBuf,
}

impl Role {
    /// Returns the arguments of a process in this role.
    pub(crate) fn arguments(&self) -> Vec<OsString> {
        match self {
            Self::Worker { job, increments } => {
                [job.arguments("worker"), vec!["--increments".into(), increments.to_string().into()]].concat()
            }
            Self::Victim { job } => job.arguments("victim"),
        }
    }
}

impl Job {
    fn arguments(&self, role: &str) -> Vec<OsString> {
        let own = ["--lock".into(), self.lock.clone().into(), "--file".into(), self.file.clone().into()];
        let servers = self.servers.arguments().map(OsString::from);
        std::iter::once(role.into()).chain(servers).chain(own).collect()
    }
}
