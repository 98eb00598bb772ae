use anyhow::ensure;
use docent::Fence;
use std::collections::BTreeSet;
use std::fmt;
use std::time::Duration;
use tokio::time::Instant;

/// Sums of the reports of all processes.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    /// Fences of all acknowledged increments.
    fences: BTreeSet<Fence>,
    killed: Option<Killed>,
}

/// End of the victim.
#[derive(Debug)]
struct Killed {
    fence: Fence,
    at: Instant,
    /// Time until another process had the lock; `None` if no process wanted it.
    pause: Option<Duration>,
}

impl Tally {
    pub(crate) fn acknowledged(&self) -> u64 {
        self.fences.len() as u64
    }

    /// Records that the victim was killed just now.
    pub(crate) fn killed(&mut self, fence: Fence) {
        self.killed = Some(Killed { fence, at: Instant::now(), pause: None });
    }

    /// Records an acknowledged increment. Returns true for the first one after the victim was killed.
    pub(crate) fn done(&mut self, fence: Fence) -> anyhow::Result<bool> {
        ensure!(self.fences.insert(fence), "two increments under fence {fence}");
        let Some(killed) = &mut self.killed else { return Ok(false) };
        ensure!(fence != killed.fence, "an increment under the victim's fence {fence}");
        let is_first = fence > killed.fence && killed.pause.is_none();
        if is_first {
            killed.pause = Some(killed.at.elapsed());
        }
        Ok(is_first)
    }

    /// Compares the acknowledged increments with the expected ones, and with the file.
    pub(crate) fn check(&self, wanted: u64, number: u64) -> anyhow::Result<()> {
        let acknowledged = self.acknowledged();
        ensure!(self.killed.is_some(), "the victim never held the lock");
        ensure!(
            number == acknowledged,
            "the file contains {number}, but the processes acknowledged {acknowledged}"
        );
        ensure!(acknowledged == wanted, "{acknowledged} increments were acknowledged, expected {wanted}");
        Ok(())
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} increments acknowledged", self.acknowledged())?;
        match self.killed.as_ref().and_then(|killed| killed.pause) {
            Some(time) => write!(f, ", {:.3} s from the kill to the next increment", time.as_secs_f64()),
            None => Ok(()),
        }
    }
}
