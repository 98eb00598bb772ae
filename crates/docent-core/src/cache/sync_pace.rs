use crate::time::Backoff;
use std::time::Duration;
use tokio::time::Instant;

/// Minimum lifetime of a link that counts as stable.
const STEADY: Duration = Duration::from_secs(10);

/// Pauses of a cache before its syncs.
pub(super) struct SyncPace {
    last: Option<Instant>,
    /// Pauses between syncs on an unstable link.
    flapping: Backoff,
}

impl SyncPace {
    pub(super) fn new() -> Self {
        Self { last: None, flapping: Backoff::endless() }
    }

    /// Records that a sync starts.
    pub(super) fn begun(&mut self) {
        self.last = Some(Instant::now());
    }

    /// Returns a random pause before a sync of a cache with this number of nodes. Many clients lose their
    /// links together, and would otherwise read everything at the same time.
    pub(super) fn pause(&mut self, nodes: usize) -> Duration {
        let Some(last) = self.last else { return Duration::ZERO };
        let spread = spread(nodes).mul_f64(fastrand::f64());
        if last.elapsed() >= STEADY {
            self.flapping = Backoff::endless();
            return spread;
        }
        spread.max(self.flapping.pause())
    }
}

/// Returns the time over which the syncs of many caches with this number of nodes are spread, after all lost
/// their links together.
fn spread(nodes: usize) -> Duration {
    const LONGEST: Duration = Duration::from_secs(1);
    u64::try_from(nodes).map_or(LONGEST, Duration::from_millis).min(LONGEST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn syncs_are_spread_over_a_millisecond_for_each_node_and_a_second_at_most() {
        assert_eq!(spread(0), Duration::ZERO);
        assert_eq!(spread(300), Duration::from_millis(300));
        assert_eq!(spread(70_000), Duration::from_secs(1));
    }
}
