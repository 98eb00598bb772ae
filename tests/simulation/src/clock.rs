use crate::controls::Controls;
use docent::time::{Clock, Timestamp};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The current time of the world, as set by the step loop. All hosts share it during a step, so recorded
/// times never decrease.
#[derive(Debug, Clone, Default)]
pub(crate) struct WorldTime(Arc<AtomicU64>);

impl WorldTime {
    pub(crate) fn set(&self, elapsed: Duration) {
        self.0.store(u64::try_from(elapsed.as_nanos()).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    pub(crate) fn now(&self) -> Duration {
        Duration::from_nanos(self.0.load(Ordering::Relaxed))
    }
}

/// A client's clock. It runs with the world, stops while the client is paused, and jumps forward when the
/// pause ends.
#[derive(Debug)]
pub(crate) struct ProcessClock {
    controls: Controls,
    last: AtomicU64,
}

impl ProcessClock {
    pub(crate) fn new(controls: Controls) -> Self {
        Self { controls, last: AtomicU64::new(0) }
    }
}

impl Clock for ProcessClock {
    fn now(&self) -> Timestamp {
        // No lease may start at zero.
        const A_DAY: Duration = Duration::from_secs(24 * 60 * 60);
        let last = self.last.load(Ordering::Relaxed);
        // Only the drops at the end of a run happen outside of the simulation.
        let elapsed = match turmoil::sim_elapsed() {
            Some(elapsed) if !self.controls.is_frozen() => {
                u64::try_from(elapsed.as_nanos()).unwrap_or(u64::MAX)
            }
            _ => last,
        };
        let now = elapsed.max(last);
        self.last.store(now, Ordering::Relaxed);
        Timestamp::from_nanos(now) + A_DAY
    }
}
