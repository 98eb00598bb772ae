//! Two worker processes are candidates in an election. Only the leader does the job; the leader is killed,
//! and the other worker takes over:
//!
//! ```text
//! cargo run --example leader_worker
//! ```
//!
//! `DOCENT_CONNECT=host:port` runs the example on a real ensemble. It ends with an error if two workers did
//! pieces of the job in an order that their fences do not allow, or if no worker took over.

mod cli;
mod done;
mod parent;
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
        None => parent::run().await,
        Some(Role::Worker { seat, name }) => worker::run(&seat, &name).await,
    }
}
