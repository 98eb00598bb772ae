use anyhow::{Result, ensure};
use std::time::{Duration, Instant};

/// CI allows 45 minutes, the checks before this included: past this budget somebody has to make something
/// faster.
const BUDGET: Duration = Duration::from_secs(38 * 60);

/// Announces the stages of a chore, and says how long each took.
#[derive(Debug)]
pub(crate) struct Stages {
    started: Instant,
    budget: Option<Duration>,
    seconds: Vec<(&'static str, f64)>,
}

impl Stages {
    pub(crate) fn start() -> Self {
        Self { started: Instant::now(), budget: Some(BUDGET), seconds: Vec::new() }
    }

    /// Stages of a chore that CI does not run.
    pub(crate) fn unbounded() -> Self {
        Self { budget: None, ..Self::start() }
    }

    /// Runs one stage.
    pub(crate) fn run<T>(&mut self, name: &'static str, work: impl FnOnce() -> Result<T>) -> Result<T> {
        println!("== {name}");
        let started = Instant::now();
        let done = work();
        self.seconds.push((name, started.elapsed().as_secs_f64()));
        done
    }

    /// Prints the seconds of each stage.
    ///
    /// # Errors
    /// When all together took longer than CI may.
    pub(crate) fn finish(self) -> Result<()> {
        let total = self.started.elapsed();
        for (name, seconds) in &self.seconds {
            println!("{seconds:8.1} s  {name}");
        }
        println!("{:8.1} s  in all", total.as_secs_f64());
        let budget = self.budget.unwrap_or(Duration::MAX);
        ensure!(total <= budget, "took {} s, of {} s allowed", total.as_secs(), budget.as_secs());
        Ok(())
    }
}
