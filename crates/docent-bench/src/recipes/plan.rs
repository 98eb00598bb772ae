use super::chart::Chart;
use super::growth::GROWTH;
use super::workload::Workload;
use super::workloads::WORKLOADS;
use anyhow::{Result, ensure};
use clap::Args;
use std::path::PathBuf;
use std::time::Duration;

/// Command line of the recipes bench.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Take short samples, in three rounds or five for the workloads that vary most, without growth; takes at
    /// most a quarter of an hour on two cores.
    #[arg(long)]
    pub(super) quick: bool,
    /// Run only the workloads whose names begin with this text.
    #[arg(long)]
    pub(super) only: Option<String>,
    /// Number of rounds, in each of which all sides are measured one after the other [default: 5; with
    /// `--quick` 5 for the workloads that vary most and 3 for the rest].
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: Option<u32>,
    /// Length of a sample of a rate, in milliseconds.
    #[arg(long)]
    window: Option<u64>,
    /// Measure only growth and memory.
    #[arg(long)]
    growth: bool,
    /// Write all figures to this file, as JSON.
    #[arg(long)]
    pub(super) json: Option<PathBuf>,
    /// Write the tables to this file, as Markdown.
    #[arg(long)]
    pub(super) markdown: Option<PathBuf>,
    /// Folder for the charts [default: `docs`, or none if only some workloads are measured].
    #[arg(long)]
    charts: Option<PathBuf>,
}

/// Lengths of samples, and how often they are taken.
#[derive(Debug, Clone, Copy)]
pub(super) struct Plan {
    pub(super) rounds: u32,
    /// Rounds of the workloads whose ratios vary less.
    steady_rounds: u32,
    lead: u64,
    window: u64,
    samples: u64,
    /// Time from the start after which noisy samples are no longer repeated.
    pub(super) patience: Duration,
    /// Time from the start after which no workload of a further round begins.
    pub(super) limit: Duration,
}

/// Length of the samples of a counting run, in milliseconds. The counting run also warms up the JVMs.
const COUNTING_WINDOW: u64 = 700;
const COUNTING_SAMPLES: u64 = 20;
/// Workloads whose ratios vary most from round to round.
const UNSTEADY: &[&str] = &[
    "uncontended",
    "dropped",
    "contended-128",
    "shared",
    "read-write",
    "simple-100",
    "change-1000",
    "publish",
];
/// Number of instances whose watches a view sets per millisecond, even on a slow machine. The bench pauses
/// accordingly after it has opened a view.
const INSTANCES_PER_MILLISECOND: u64 = 2;
/// Number of changes that take as long as one cold view.
const SAMPLES_PER_VIEW: u64 = 10;

impl Options {
    pub(super) fn plan(&self) -> Plan {
        let (steady, lead, window, samples, patience, limit) =
            if self.quick { (3, 250, 1_500, 60, 10, 13) } else { (5, 500, 5_000, 300, 90, 240) };
        Plan {
            rounds: self.rounds.unwrap_or(5),
            steady_rounds: self.rounds.unwrap_or(steady),
            lead,
            window: self.window.unwrap_or(window),
            samples,
            patience: Duration::from_secs(patience * 60),
            limit: Duration::from_secs(limit * 60),
        }
    }

    /// Returns the workloads of the rounds.
    ///
    /// # Errors
    ///
    /// Fails if no workload is selected, listing the existing names.
    pub(super) fn workloads(&self) -> Result<Vec<&'static Workload>> {
        let chosen = self.chosen(WORKLOADS);
        let names: Vec<_> = WORKLOADS.iter().chain(GROWTH).map(|workload| workload.name).collect();
        let is_any = !chosen.is_empty() || !self.grown().is_empty();
        ensure!(
            is_any,
            "no workload has a name that begins with the given text; the workloads are {}",
            names.join(", ")
        );
        Ok(if self.growth { Vec::new() } else { chosen })
    }

    /// Returns the workloads that are measured once.
    pub(super) fn grown(&self) -> Vec<&'static Workload> {
        if self.growth || self.only.is_some() || !self.quick { self.chosen(GROWTH) } else { Vec::new() }
    }

    /// The charts with their files.
    pub(super) fn charts(&self) -> Vec<(Chart, PathBuf)> {
        let whole =
            || self.is_whole().then(|| PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs")));
        let folder = self.charts.clone().or_else(whole);
        folder.map_or_else(Vec::new, |folder| {
            Chart::ALL.map(|chart| (chart, folder.join(chart.file_name()))).into()
        })
    }

    /// All files that are written.
    pub(super) fn outputs(&self) -> Vec<PathBuf> {
        let charts = self.charts().into_iter().map(|(_, path)| path);
        self.json.clone().into_iter().chain(self.markdown.clone()).chain(charts).collect()
    }

    /// Returns true if every workload with a target is measured.
    fn is_whole(&self) -> bool {
        self.only.is_none() && !self.growth
    }

    fn chosen(&self, of: &'static [Workload]) -> Vec<&'static Workload> {
        let is_chosen =
            |workload: &&Workload| self.only.as_ref().is_none_or(|only| workload.name.starts_with(only));
        of.iter().filter(is_chosen).collect()
    }
}

impl Plan {
    /// Returns true if a workload is measured in this round, counted from zero.
    pub(super) fn has(&self, workload: &Workload, round: u32) -> bool {
        round < self.steady_rounds || round < self.rounds && UNSTEADY.contains(&workload.name)
    }

    /// The number of rounds, in words.
    pub(super) fn described_rounds(&self) -> String {
        match (self.steady_rounds, self.rounds) {
            (steady, most) if steady == most => most.to_string(),
            (steady, most) => format!("{steady} to {most}"),
        }
    }

    /// The general settings of a sample's order, besides the workload's own.
    pub(super) fn settings(&self, workload: &Workload) -> String {
        written(workload, self.lead, self.window, self.samples)
    }

    /// The general settings of a counting run's order.
    pub(super) fn counting(&self, workload: &Workload) -> String {
        let window = COUNTING_WINDOW.min(self.window);
        written(workload, self.lead, window, COUNTING_SAMPLES.min(self.samples))
    }
}

fn written(workload: &Workload, lead: u64, window: u64, samples: u64) -> String {
    let is_view = workload.subject.starts_with("view");
    let samples = if is_view { (samples / SAMPLES_PER_VIEW).max(2) } else { samples };
    let settle = workload.instances as u64 / INSTANCES_PER_MILLISECOND;
    format!("lead={lead} window={window} samples={samples} settle={settle}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_variable_workloads_exist() {
        let is_known = |name: &&&str| WORKLOADS.iter().any(|workload| workload.name == **name);
        assert_eq!(UNSTEADY.iter().filter(is_known).count(), UNSTEADY.len());
    }
}
