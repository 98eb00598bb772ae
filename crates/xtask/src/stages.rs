use anyhow::Result;
use std::time::{Duration, Instant};

/// How long a chore of CI should take at most, on two cores.
const TARGET: Duration = Duration::from_secs(25 * 60);

/// Announces the stages of a chore, and says how long each took.
#[derive(Debug)]
pub(crate) struct Stages {
    started: Instant,
    target: Option<Duration>,
    seconds: Vec<(&'static str, f64)>,
}

impl Stages {
    pub(crate) fn start() -> Self {
        Self { started: Instant::now(), target: Some(TARGET), seconds: Vec::new() }
    }

    /// Stages of a chore that CI does not run.
    pub(crate) fn unbounded() -> Self {
        Self { target: None, ..Self::start() }
    }

    /// Runs one stage.
    pub(crate) fn run<T>(&mut self, name: &'static str, work: impl FnOnce() -> Result<T>) -> Result<T> {
        println!("== {name}");
        let started = Instant::now();
        let done = work();
        self.seconds.push((name, started.elapsed().as_secs_f64()));
        done
    }

    /// Prints the seconds of each stage, and says when all together took longer than they should: a slow
    /// machine is no error.
    pub(crate) fn finish(self) {
        let total = self.started.elapsed();
        for (name, seconds) in &self.seconds {
            println!("{seconds:8.1} s  {name}");
        }
        println!("{:8.1} s  in all", total.as_secs_f64());
        if let Some(target) = self.target.filter(|target| total > *target) {
            println!(
                "notice: this took {} s; the target is {} s on two cores",
                total.as_secs(),
                target.as_secs()
            );
        }
    }
}
