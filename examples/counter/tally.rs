use anyhow::ensure;
use docent::Fence;
use std::collections::BTreeSet;
use std::fmt;
use std::time::Duration;
use tokio::time::Instant;

/// Sums of the reports of all processes.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    /// The fences of all acknowledged increments.
    fences: BTreeSet<Fence>,
    killed: Option<Killed>,
}

/// The victim's end.
#[derive(Debug)]
struct Killed {
    fence: Fence,
    at: Instant,
    /// How long it took until another had the lock; `None` when nobody wanted it.
    stood_still: Option<Duration>,
}

impl Tally {
    pub(crate) fn acknowledged(&self) -> u64 {
        self.fences.len() as u64
    }

    /// The victim was killed just now.
    pub(crate) fn killed(&mut self, fence: Fence) {
        self.killed = Some(Killed { fence, at: Instant::now(), stood_still: None });
    }

    /// An increment was acknowledged. True for the first one after the victim was killed.
    pub(crate) fn done(&mut self, fence: Fence) -> anyhow::Result<bool> {
        ensure!(self.fences.insert(fence), "two increments under fence {fence}");
        let Some(killed) = &mut self.killed else { return Ok(false) };
        ensure!(fence != killed.fence, "an increment under the victim's fence {fence}");
        let is_first = fence > killed.fence && killed.stood_still.is_none();
        if is_first {
            killed.stood_still = Some(killed.at.elapsed());
        }
        Ok(is_first)
    }

    /// Compares the acknowledged increments with the wanted ones, and with the file.
    pub(crate) fn check(&self, wanted: u64, number: u64) -> anyhow::Result<()> {
        let acknowledged = self.acknowledged();
        ensure!(self.killed.is_some(), "the victim never held the lock");
        ensure!(number == acknowledged, "the file says {number}, the processes acknowledged {acknowledged}");
        ensure!(acknowledged == wanted, "{acknowledged} increments were acknowledged, not {wanted}");
        Ok(())
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} increments acknowledged", self.acknowledged())?;
        match self.killed.as_ref().and_then(|killed| killed.stood_still) {
            Some(time) => write!(f, ", {:.3} s from the kill to the next one", time.as_secs_f64()),
            None => Ok(()),
        }
    }
}
