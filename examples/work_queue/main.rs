//! Producers and consumers in separate processes share a queue of jobs. One consumer is killed while it works
//! on a job, and another gets that job:
//!
//! ```text
//! cargo run --example work_queue
//! ```
//!
//! `DOCENT_CONNECT=host:port` runs the example on a real ensemble. It ends with an error if a job is lost, or
//! done twice.

mod cli;
mod job;
mod parent;
mod report;
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
        Some(Role::Producer { seat, name, jobs }) => worker::produce(&seat, &name, jobs).await,
        Some(Role::Consumer { seat, name, work_ms }) => worker::consume(&seat, &name, work_ms).await,
    }
}
