use std::time::{Duration, Instant, SystemTime};

/// A [`TimedLease`](crate::TimedLease) that was obtained, with its end. This is not a guard: dropping it does
/// nothing, and the end of the lease is not signalled.
#[derive(Debug, Clone)]
pub struct Obtained {
    slot: u32,
    end: SystemTime,
    /// Time until which the lease lasts by this machine's monotonic clock, independent of changes of its
    /// system clock.
    last: Option<Instant>,
}

impl Obtained {
    /// Creates the value. `begun` is an instant before `end` was computed as the current time plus
    /// `duration`.
    pub(super) fn new(slot: u32, end: SystemTime, begun: Instant, duration: Duration) -> Self {
        Self { slot, end, last: begun.checked_add(duration) }
    }

    /// Returns the number of the slot, counted from 0; 0 for a lease with one slot.
    pub fn slot(&self) -> u32 {
        self.slot
    }

    /// Returns the time at which other identities may obtain the lease, by their clocks.
    pub fn end(&self) -> SystemTime {
        self.end
    }

    /// Returns the time that is left, by the clock of this machine; zero once the lease has expired. Machines
    /// whose clocks are ahead consider the lease expired earlier, by that difference.
    pub fn remaining(&self) -> Duration {
        let by_clock = self.end.duration_since(SystemTime::now()).unwrap_or_default();
        let passed = |last: Instant| last.saturating_duration_since(Instant::now());
        by_clock.min(self.last.map_or(Duration::MAX, passed))
    }

    /// Returns whether time is [left](Self::remaining).
    pub fn is_valid(&self) -> bool {
        !self.remaining().is_zero()
    }
}
