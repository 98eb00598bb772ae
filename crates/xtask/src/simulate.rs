//! Runs of the simulation: one process per seed, as many at a time as there are processors.

mod arguments;
mod batch;
mod binary;
mod planted;
mod report;
mod single;
mod tally;

use anyhow::{Result, ensure};
use arguments::{Arguments, Extent, Task};
use batch::Batch;
use binary::Binary;
use std::time::{Duration, Instant};

/// Maximum number of seeds of each recipe in a stage.
const SEEDS: u64 = 12;

/// Environment variable that overrides the duration of a stage, in seconds.
const SHARE_VARIABLE: &str = "DOCENT_SIMULATION_SECONDS";

/// Runs the task as called from the command line.
pub(crate) fn run(arguments: &[String]) -> Result<()> {
    let arguments = Arguments::parse(arguments)?;
    match &arguments.task {
        Task::One { seed, trace } => single::run(&Binary::build()?, &arguments, *seed, *trace),
        Task::Many(extent) => many(&Binary::build()?, &arguments, *extent),
        Task::Planted { seeds } => planted::run(&arguments, *seeds),
    }
}

/// Builds the simulation in advance for a later stage.
pub(crate) fn build() -> Result<()> {
    Binary::build().map(|_| ())
}

/// Runs as many seeds of all recipes in turn as fit into `share`, not counting the build of the simulation.
/// An upper bound ensures that a faster machine does not reach seeds that have never been run.
pub(crate) fn stage(share: Duration) -> Result<()> {
    let seconds = std::env::var(SHARE_VARIABLE).ok().and_then(|seconds| seconds.parse().ok());
    let share = seconds.map_or(share, Duration::from_secs);
    let binary = Binary::build()?;
    let extent = Extent::SeedsUntil(SEEDS, Instant::now() + share);
    many(&binary, &Arguments::default(), extent)
}

fn many(binary: &Binary, arguments: &Arguments, extent: Extent) -> Result<()> {
    let started = Instant::now();
    let tally = Batch::new(binary, arguments)?.run(extent);
    report::print(&tally, started.elapsed());
    ensure!(tally.runs > 0, "no seed was run");
    ensure!(tally.failures.is_empty(), "{} of {} runs failed", tally.failures.len(), tally.runs);
    Ok(())
}
