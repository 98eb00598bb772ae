use anyhow::{Context, Result};
use std::fs;
use std::time::Instant;

/// Ticks per second in which the kernel counts CPU time, on every Linux of Rust's tier 1.
const TICKS: f64 = 100.0;

/// Load of processes that do not belong to the bench since a point in time, in cores.
#[derive(Debug)]
pub(super) struct Load {
    own: Vec<u32>,
    since: Instant,
    foreign: f64,
}

impl Load {
    /// Starts to measure. `own` are the processes that the bench started, and the bench itself.
    ///
    /// # Errors
    ///
    /// Fails if one of the processes has exited.
    pub(super) fn watch(own: Vec<u32>) -> Result<Self> {
        let foreign = foreign(&own)?;
        Ok(Self { own, since: Instant::now(), foreign })
    }

    /// Returns the number of cores that other processes have used since the start of the measurement.
    ///
    /// # Errors
    ///
    /// Fails if a process of the bench has exited.
    pub(super) fn cores(&self) -> Result<f64> {
        let ticks = foreign(&self.own)? - self.foreign;
        Ok((ticks / TICKS / self.since.elapsed().as_secs_f64()).max(0.0))
    }
}

/// Returns the ticks used by all processes of this machine except `own`.
fn foreign(own: &[u32]) -> Result<f64> {
    let mut ticks = busy(&fs::read_to_string("/proc/stat")?)?;
    for pid in own {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat"));
        ticks -= used(&stat.with_context(|| format!("process {pid} has exited"))?)?;
    }
    Ok(ticks)
}

/// Returns the ticks that were not idle, on all cores: user, nice, system and stolen. Interrupts are omitted,
/// because loopback interrupts belong to the bench.
fn busy(stat: &str) -> Result<f64> {
    let line = stat.lines().next().context("/proc/stat is empty")?;
    let fields: Vec<f64> = line.split_whitespace().skip(1).filter_map(|field| field.parse().ok()).collect();
    [0, 1, 2, 7].iter().map(|index| fields.get(*index).context("/proc/stat has too few fields")).sum()
}

/// Returns the ticks used by all threads of a process, in user space and in the kernel.
fn used(stat: &str) -> Result<f64> {
    // The name of the program, in parentheses, may contain any character.
    let (_, rest) = stat.rsplit_once(')').context("no name in a process's stat")?;
    let mut fields = rest.split_whitespace().skip(11);
    let mut ticks = || fields.next().context("a process's stat is short")?.parse::<f64>().context("no ticks");
    Ok(ticks()? + ticks()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn busy_time_includes_stolen_time() {
        let stat = "cpu  100 20 30 5000 600 0 70 8 0 0\ncpu0 1 1 1 1 1 1 1 1 1 1\n";
        assert_eq!(busy(stat).unwrap(), 158.0);
        assert!(busy("cpu 1 2").is_err());
    }

    #[test]
    fn a_process_is_counted_whatever_its_name() {
        let stat = "77 (a) b (c)) S 1 77 77 0 -1 4194560 100 0 0 0 250 50 9 9 20 0 12 0 100";
        assert_eq!(used(stat).unwrap(), 300.0);
        assert!(used("77 a").is_err());
    }

    #[test]
    fn this_process_is_not_foreign_to_itself() {
        assert!(Load::watch(vec![std::process::id()]).unwrap().cores().unwrap() >= 0.0);
    }
}
