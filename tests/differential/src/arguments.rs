use anyhow::{Context, Result, bail};
use docent_differential::Campaign;
use std::path::PathBuf;

/// The parsed command line.
#[derive(Debug)]
pub(crate) struct Arguments {
    pub(crate) task: Task,
}

#[derive(Debug)]
pub(crate) enum Task {
    /// Runs scripts one after the other.
    Run(Campaign),
    /// Shows the records of the script of a seed.
    Show(u64),
    /// Prints the script of a seed.
    Print(u64),
    /// Shows the records of a script in a file.
    File(PathBuf),
    /// Records the kept scripts again.
    Record,
    /// Plants every defect, one after the other, until a script detects it.
    Planted(Campaign),
}

impl Arguments {
    pub(crate) fn parse(mut arguments: impl Iterator<Item = String>) -> Result<Self> {
        let mut campaign = Campaign { seed: 1, scripts: 2_000, at_once: 32, real_twice: false, failures: 5 };
        let (mut task, mut planted) = (None, false);
        while let Some(argument) = arguments.next() {
            let mut value = || arguments.next().with_context(|| format!("{argument} needs a value"));
            match argument.as_str() {
                "--scripts" => campaign.scripts = value()?.parse()?,
                "--seed" => campaign.seed = value()?.parse()?,
                "--at-once" => campaign.at_once = value()?.parse()?,
                "--failures" => campaign.failures = value()?.parse()?,
                "--show" => task = Some(Task::Show(value()?.parse()?)),
                "--print" => task = Some(Task::Print(value()?.parse()?)),
                "--file" => task = Some(Task::File(value()?.into())),
                "--record" => task = Some(Task::Record),
                "--real-twice" => campaign.real_twice = true,
                "--planted" => planted = true,
                _ => bail!("unknown argument {argument:?}"),
            }
        }
        let otherwise = if planted { Task::Planted(campaign) } else { Task::Run(campaign) };
        Ok(Self { task: task.unwrap_or(otherwise) })
    }
}
