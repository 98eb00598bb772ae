use anyhow::{Context, Result};
use std::fs;
use std::time::Instant;

/// Ticks a second of the kernel's counts of CPU time, on every Linux that Rust's tier 1 knows.
const TICKS: f64 = 100.0;

/// Load of processes that do not belong to the bench, in cores, since a point in time.
#[derive(Debug)]
pub(super) struct Load {
    own: Vec<u32>,
    since: Instant,
    foreign: f64,
}

impl Load {
    /// Begins to look; `own` are the processes that the bench started, and itself.
    ///
    /// # Errors
    /// When one of them is gone.
    pub(super) fn watch(own: Vec<u32>) -> Result<Self> {
        let foreign = foreign(&own)?;
        Ok(Self { own, since: Instant::now(), foreign })
    }

    /// Cores that others used since it began to look.
    ///
    /// # Errors
    /// When a process of the bench is gone.
    pub(super) fn cores(&self) -> Result<f64> {
        let ticks = foreign(&self.own)? - self.foreign;
        Ok((ticks / TICKS / self.since.elapsed().as_secs_f64()).max(0.0))
    }
}

/// Ticks of all that runs on this machine but these processes.
fn foreign(own: &[u32]) -> Result<f64> {
    let mut ticks = busy(&fs::read_to_string("/proc/stat")?)?;
    for pid in own {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat"));
        ticks -= used(&stat.with_context(|| format!("process {pid} is gone"))?)?;
    }
    Ok(ticks)
}

/// Ticks in which something ran, on all cores: user, nice, system and stolen. Interrupts are left out: those
/// of the loopback are the bench's own.
fn busy(stat: &str) -> Result<f64> {
    let line = stat.lines().next().context("/proc/stat is empty")?;
    let fields: Vec<f64> = line.split_whitespace().skip(1).filter_map(|field| field.parse().ok()).collect();
    [0, 1, 2, 7].iter().map(|index| fields.get(*index).context("/proc/stat has too few fields")).sum()
}

/// Ticks that a process used, all its threads, in user space and in the kernel.
fn used(stat: &str) -> Result<f64> {
    // The name of the program, in parentheses, may hold anything.
    let (_, rest) = stat.rsplit_once(')').context("no name in a process's stat")?;
    let mut fields = rest.split_whitespace().skip(11);
    let mut ticks = || fields.next().context("a process's stat is short")?.parse::<f64>().context("no ticks");
    Ok(ticks()? + ticks()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn busy_is_what_runs_and_what_is_stolen() {
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
