use anyhow::{Result, ensure};
use std::time::{Duration, Instant};

/// What CI allows is 40 minutes: past this somebody has to make something faster.
const BUDGET: Duration = Duration::from_secs(35 * 60);

/// Announces the stages of a chore, and says how long each took.
#[derive(Debug)]
pub(crate) struct Stages {
    started: Instant,
    seconds: Vec<(&'static str, f64)>,
}

impl Stages {
    pub(crate) fn start() -> Self {
        Self { started: Instant::now(), seconds: Vec::new() }
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
    /// When all together took too long.
    pub(crate) fn finish(self) -> Result<()> {
        let total = self.started.elapsed();
        for (name, seconds) in &self.seconds {
            println!("{seconds:8.1} s  {name}");
        }
        println!("{:8.1} s  in all", total.as_secs_f64());
        ensure!(total <= BUDGET, "took {} s, of {} s allowed", total.as_secs(), BUDGET.as_secs());
        Ok(())
    }
}
