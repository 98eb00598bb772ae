use anyhow::{Context, Result, bail, ensure};
use std::num::NonZero;
use std::thread::available_parallelism;
use std::time::{Duration, Instant};

/// Command line of the task.
#[derive(Debug)]
pub(crate) struct Arguments {
    pub(crate) task: Task,
    /// The only recipe. Without it all recipes are run in turn.
    pub(crate) recipe: Option<String>,
    /// The first seed.
    pub(crate) from: u64,
    /// Number of processes at a time.
    pub(crate) jobs: usize,
    /// Runs every seed twice and compares the hashes.
    pub(crate) twice: bool,
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum Task {
    /// One seed.
    One { seed: u64, trace: bool },
    /// Seeds one after the other.
    Many(Extent),
    /// Every planted defect until it is caught, at most for `seeds` seeds.
    Planted { seeds: u64 },
}

/// Number of seeds.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Extent {
    /// This number of seeds.
    Seeds(u64),
    /// All seeds that can be started before this time.
    Until(Instant),
    /// At most this number of seeds, started before this time.
    SeedsUntil(u64, Instant),
}

impl Default for Arguments {
    fn default() -> Self {
        Self {
            task: Task::Many(Extent::Seeds(100)),
            recipe: None,
            from: 1,
            jobs: available_parallelism().map_or(1, NonZero::get),
            twice: false,
        }
    }
}

impl Arguments {
    pub(crate) fn parse(arguments: &[String]) -> Result<Self> {
        let mut parsed = Self::default();
        let (mut seed, mut trace, mut planted, mut extent) = (None, false, false, None);
        let mut arguments = arguments.iter();
        while let Some(argument) = arguments.next() {
            let mut value = || arguments.next().with_context(|| format!("{argument} needs a value"));
            match argument.as_str() {
                "--seeds" => extent = Some(Extent::Seeds(number(value()?)?)),
                "--minutes" => extent = Some(Extent::Until(Instant::now() + minutes(value()?)?)),
                "--seed" => seed = Some(number(value()?)?),
                "--from" => parsed.from = number(value()?)?,
                "--recipe" => parsed.recipe = Some(value()?.clone()),
                "--jobs" => parsed.jobs = usize::try_from(number(value()?)?)?,
                "--trace" => trace = true,
                "--twice" => parsed.twice = true,
                "--planted" => planted = true,
                _ => bail!("unknown argument {argument:?}"),
            }
        }
        ensure!(parsed.jobs > 0, "--jobs must be at least 1");
        ensure!(seed.is_none() || parsed.recipe.is_some(), "--seed also needs --recipe");
        parsed.task = match (seed, planted, extent) {
            (Some(seed), false, None) => Task::One { seed, trace },
            (None, true, None) => Task::Planted { seeds: 200 },
            (None, true, Some(Extent::Seeds(seeds))) => Task::Planted { seeds },
            (None, false, extent) => Task::Many(extent.unwrap_or(Extent::Seeds(100))),
            _ => bail!("use only one of --seed, --seeds and --minutes, and with --planted only --seeds"),
        };
        Ok(parsed)
    }
}

fn number(text: &str) -> Result<u64> {
    text.parse().with_context(|| format!("{text:?} is not a number"))
}

fn minutes(text: &str) -> Result<Duration> {
    let minutes: f64 = text.parse().with_context(|| format!("{text:?} is not a number"))?;
    Duration::try_from_secs_f64(minutes * 60.0)
        .with_context(|| format!("{text:?} is not a duration in minutes"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Arguments> {
        Arguments::parse(&text.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn one_seed_is_another_task_than_many() {
        assert!(matches!(
            parse("--seed 7 --recipe mutex --trace").unwrap().task,
            Task::One { seed: 7, trace: true }
        ));
        let many = parse("--seeds 9 --from 3 --jobs 1 --twice").unwrap();
        assert!(matches!(many.task, Task::Many(Extent::Seeds(9))));
        assert_eq!((many.from, many.jobs, many.twice), (3, 1, true));
        assert!(matches!(parse("--planted --seeds 5").unwrap().task, Task::Planted { seeds: 5 }));
    }

    #[test]
    fn contradictory_arguments_are_refused() {
        for text in [
            "--seed 1 --recipe mutex --planted",
            "--seed 1",
            "--planted --minutes 1",
            "--seeds 1 --seed 1 --recipe mutex",
            "--jobs 0",
            "--seeds",
            "--seeds many",
            "--what",
        ] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
