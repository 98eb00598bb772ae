use anyhow::{Context, Result, bail, ensure};
use std::time::Duration;

/// Command line of a run.
#[derive(Debug, Clone)]
pub(crate) struct Options {
    /// Seed of all random draws.
    pub(crate) seed: u64,
    /// Name of the workload's recipe.
    pub(crate) recipe: String,
    /// Whether to print the whole history.
    pub(crate) trace: bool,
    /// Level from which on the crates' log messages are printed too.
    pub(crate) log: Option<String>,
    /// The planted defect.
    pub(crate) planted: Option<String>,
    /// Whether there are no faults.
    pub(crate) calm: bool,
    /// Number of clients, if it is not drawn.
    pub(crate) clients: Option<usize>,
    /// How long faults happen, if it is not drawn.
    pub(crate) turbulence: Option<Duration>,
    /// Duration of a step of simulated time.
    pub(crate) step: Duration,
}

pub(crate) const USAGE: &str = "usage: simulation --seed S [--recipe NAME] [--trace] [--log LEVEL] [--planted NAME] \
[--calm] [--clients N] [--seconds N] [--step-ms N]";

impl Options {
    /// Parses the arguments of the process, without its name.
    ///
    /// # Errors
    /// Returns an error if an argument is unknown or invalid.
    pub(crate) fn parse(mut arguments: impl Iterator<Item = String>) -> Result<Self> {
        let mut options = Self {
            seed: 0,
            recipe: "mutex".to_owned(),
            trace: false,
            log: None,
            planted: None,
            calm: false,
            clients: None,
            turbulence: None,
            step: Duration::from_millis(1),
        };
        let mut seed = None;
        while let Some(argument) = arguments.next() {
            let mut value = || arguments.next().with_context(|| format!("{argument} needs a value"));
            match argument.as_str() {
                "--seed" => seed = Some(number(&value()?)?),
                "--recipe" => options.recipe = value()?,
                "--trace" => options.trace = true,
                "--log" => options.log = Some(value()?),
                "--planted" => options.planted = Some(value()?),
                "--calm" => options.calm = true,
                "--clients" => options.clients = Some(usize::try_from(number(&value()?)?)?),
                "--seconds" => options.turbulence = Some(Duration::from_secs(number(&value()?)?)),
                "--step-ms" => options.step = Duration::from_millis(number(&value()?)?),
                _ => bail!("unknown argument {argument:?}\n{USAGE}"),
            }
        }
        options.seed = seed.context(USAGE)?;
        ensure!(options.clients != Some(0), "--clients must be at least 1");
        ensure!(!options.step.is_zero(), "--step-ms must be at least 1");
        Ok(options)
    }
}

fn number(text: &str) -> Result<u64> {
    text.parse().with_context(|| format!("{text:?} is not a number"))
}
