//! Runs of the simulation: one process for each seed, as many at once as there are processors.

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

/// Most seeds of each recipe that a stage runs.
const SEEDS: u64 = 12;

/// Overrides the time that a stage has, in seconds.
const SHARE_VARIABLE: &str = "DOCENT_SIMULATION_SECONDS";

/// The chore as it is called by hand.
pub(crate) fn run(arguments: &[String]) -> Result<()> {
    let arguments = Arguments::parse(arguments)?;
    match &arguments.task {
        Task::One { seed, trace } => single::run(&Binary::build()?, &arguments, *seed, *trace),
        Task::Many(extent) => many(&Binary::build()?, &arguments, *extent),
        Task::Planted { seeds } => planted::run(&arguments, *seeds),
    }
}

/// Builds the simulation, so that a later stage finds it.
pub(crate) fn build() -> Result<()> {
    Binary::build().map(|_| ())
}

/// As many seeds of all recipes in turn as fit into `share`, once the simulation is built. There is an upper
/// bound so that a change which passes on one machine does not meet seeds that nobody has run on a faster
/// one.
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
    ensure!(tally.runs > 0, "not one seed was run");
    ensure!(tally.failures.is_empty(), "{} of {} runs failed", tally.failures.len(), tally.runs);
    Ok(())
}
