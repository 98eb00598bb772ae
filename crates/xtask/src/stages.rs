use anyhow::{Result, ensure};
use std::time::{Duration, Instant};

/// Maximum duration of a task on two cores. A longer duration on a slower machine is not an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Target {
    pub(crate) limit: Duration,
    /// Stages that do not count.
    pub(crate) without: &'static [&'static str],
    /// Another command whose time counts as well.
    pub(crate) with: Option<&'static str>,
}

/// Prints the name and the duration of each stage of a task.
#[derive(Debug)]
pub(crate) struct Stages {
    started: Instant,
    seconds: Vec<(&'static str, f64)>,
    failed: Vec<&'static str>,
}

impl Stages {
    pub(crate) fn start() -> Self {
        Self { started: Instant::now(), seconds: Vec::new(), failed: Vec::new() }
    }

    /// Runs one stage.
    pub(crate) fn run<T>(&mut self, name: &'static str, work: impl FnOnce() -> Result<T>) -> Result<T> {
        println!("== {name}");
        let started = Instant::now();
        let done = work();
        self.seconds.push((name, started.elapsed().as_secs_f64()));
        done
    }

    /// Runs one check. If it fails, prints the error and returns `None`, so that the next check can run.
    pub(crate) fn check<T>(&mut self, name: &'static str, work: impl FnOnce() -> Result<T>) -> Option<T> {
        match self.run(name, work) {
            Ok(done) => Some(done),
            Err(error) => {
                eprintln!("error: {error:#}");
                self.failed.push(name);
                None
            }
        }
    }

    /// Prints the seconds of each stage, and fails if a check failed.
    pub(crate) fn finish_checks(self) -> Result<()> {
        let failed = self.failed.join(", ");
        self.finish(None);
        ensure!(failed.is_empty(), "failed: {failed}");
        Ok(())
    }

    /// Prints the seconds of each stage and of all stages, compared with the target.
    pub(crate) fn finish(self, target: Option<&Target>) {
        let total = self.started.elapsed().as_secs_f64();
        for (name, seconds) in &self.seconds {
            println!("{seconds:8.1} s  {name}");
        }
        println!("{total:8.1} s  in total");
        if let Some(target) = target {
            println!("{}", self.beside(target, total));
        }
    }

    fn beside(&self, target: &Target, total: f64) -> String {
        let left_out = self.seconds.iter().filter(|(name, _)| target.without.contains(name));
        let counted = total - left_out.map(|(_, seconds)| seconds).sum::<f64>();
        let without = match target.without {
            [] => String::new(),
            names => format!(" without {}", names.join(" and ")),
        };
        let with = target.with.map_or_else(String::new, |with| format!(", together with {with}"));
        let limit = target.limit.as_secs();
        format!("{counted:8.1} s{without}; the target on two cores is {limit} s{with}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhow::bail;

    #[test]
    fn checks_run_after_a_failure_and_the_failed_ones_are_named() {
        let mut stages = Stages::start();
        assert_eq!(stages.check("first", || -> Result<u8> { bail!("wrong") }), None);
        assert_eq!(stages.check("second", || Ok(2)), Some(2));
        assert_eq!(stages.check("third", || -> Result<u8> { bail!("wrong") }), None);
        assert_eq!(stages.finish_checks().unwrap_err().to_string(), "failed: first, third");
    }

    #[test]
    fn the_target_is_printed_beside_the_time_that_counts() {
        let seconds = vec![("packages", 20.0), ("build", 200.0), ("tests", 400.0)];
        let stages = Stages { started: Instant::now(), seconds, failed: Vec::new() };
        let limit = Duration::from_secs(480);
        let target = Target { limit, without: &["packages", "build"], with: None };
        assert_eq!(
            stages.beside(&target, 625.0),
            "   405.0 s without packages and build; the target on two cores is 480 s"
        );
        let target = Target { limit, without: &[], with: Some("the checks") };
        assert_eq!(
            stages.beside(&target, 625.0),
            "   625.0 s; the target on two cores is 480 s, together with the checks"
        );
    }
}
