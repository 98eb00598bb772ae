//! Runs generated scripts on both servers. `cargo xtask differential` builds and calls this program.

mod arguments;
mod planted;

use anyhow::{Result, ensure};
use arguments::{Arguments, Task};
use docent_differential::{Campaign, Failure, Servers, fixed_scripts, generate, parse, print, real};
use std::process::ExitCode;

#[tokio::main]
async fn main() -> ExitCode {
    match run().await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

async fn run() -> Result<()> {
    let arguments = Arguments::parse(std::env::args().skip(1))?;
    match arguments.task {
        Task::Run(campaign) => many(campaign).await,
        Task::Show(seed) => show(&print(&generate(seed))).await,
        Task::Print(seed) => {
            print!("{}", print(&generate(seed)));
            Ok(())
        }
        Task::File(file) => show(&std::fs::read_to_string(file)?).await,
        Task::Record => record().await,
        Task::Planted(campaign) => planted::run(campaign).await,
    }
}

async fn many(campaign: Campaign) -> Result<()> {
    let failures = campaign.run().await?;
    failures.iter().for_each(report);
    ensure!(failures.is_empty(), "{} scripts differ", failures.len());
    Ok(())
}

fn report(failure: &Failure) {
    println!("\n# seed {}", failure.seed);
    print!("{}{}", print(&failure.script), failure.difference);
}

/// Prints the records of both servers.
async fn show(script: &str) -> Result<()> {
    let script = parse(script.split("\n---\n").next().unwrap_or_default())?;
    let (real, embedded) = Servers::start().await?.records(&script).await?;
    println!("# real\n{real}\n# embedded\n{embedded}");
    match docent_differential::compare(&real, &embedded) {
        Some(difference) => anyhow::bail!("the servers differ:\n{difference}"),
        None => Ok(()),
    }
}

/// Replaces the records of the kept scripts with those of a real server.
async fn record() -> Result<()> {
    let server = real().await?;
    for fixed in fixed_scripts()? {
        fixed.keep(&fixed.run(server.address()).await?)?;
    }
    Ok(())
}
