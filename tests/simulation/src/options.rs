use anyhow::{Context, Result, bail, ensure};
use std::time::Duration;

/// Command line of a run.
#[derive(Debug, Clone)]
pub(crate) struct Options {
    /// Seed from which everything random is drawn.
    pub(crate) seed: u64,
    /// Which workload.
    pub(crate) recipe: String,
    /// Print all that happened.
    pub(crate) trace: bool,
    /// Also print what the crates log, from this level on.
    pub(crate) log: Option<String>,
    /// A defect that is planted.
    pub(crate) planted: Option<String>,
    /// No faults at all.
    pub(crate) calm: bool,
    /// How many clients, if not drawn.
    pub(crate) clients: Option<usize>,
    /// How long there are faults, if not drawn.
    pub(crate) turbulence: Option<Duration>,
    /// How far time goes at a time.
    pub(crate) step: Duration,
}

pub(crate) const USAGE: &str = "usage: simulation --seed S [--recipe NAME] [--trace] [--log LEVEL] [--planted NAME] \
[--calm] [--clients N] [--seconds N] [--step-ms N]";

impl Options {
    /// Reads the arguments of the process, without its name.
    ///
    /// # Errors
    /// When they are not understood.
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
                _ => bail!("argument {argument:?} is not known\n{USAGE}"),
            }
        }
        options.seed = seed.context(USAGE)?;
        ensure!(options.clients != Some(0), "0 clients do nothing");
        ensure!(!options.step.is_zero(), "a step of 0 ms leads nowhere");
        Ok(options)
    }
}

fn number(text: &str) -> Result<u64> {
    text.parse().with_context(|| format!("{text:?} is not a number"))
}
