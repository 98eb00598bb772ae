//! Several processes count in one file under one lock. One of them is killed while it holds the lock, and no
//! increment is lost:
//!
//! ```text
//! cargo run --example counter -- --processes 4 --increments 200
//! ```
//!
//! `DOCENT_CONNECT=host:port` runs the example on a real ensemble. It ends with an error if the number in the
//! file is not the sum of the increments that the processes reported.

mod cli;
mod ledger;
mod line;
mod parent;
mod parent_exit;
mod tally;
mod victim;
mod worker;

use clap::Parser;
use cli::{Cli, Role};
use std::process::ExitCode;

#[tokio::main]
async fn main() -> ExitCode {
    docent_examples::exit_code(run(Cli::parse()).await)
}

async fn run(cli: Cli) -> anyhow::Result<()> {
    docent_examples::log_to_stderr()?;
    match cli.role {
        None => parent::run(cli.processes, cli.increments).await,
        Some(Role::Worker { job, increments }) => worker::run(&job, increments).await,
        Some(Role::Victim { job }) => victim::run(&job).await,
    }
}
