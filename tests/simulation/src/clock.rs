use crate::controls::Controls;
use docent::time::{Clock, Timestamp};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The time that the world is at, as its step loop says. All hosts of a step share it, so recorded times
/// never go back.
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

/// A client's clock: runs with the world, stands still while the client is frozen, and jumps when that ends.
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
        // No lease starts at zero.
        const A_DAY: Duration = Duration::from_secs(24 * 60 * 60);
        let last = self.last.load(Ordering::Relaxed);
        // Outside of the simulation are only the drops at its end.
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
