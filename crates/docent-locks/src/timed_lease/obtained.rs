use std::time::{Duration, Instant, SystemTime};

/// A [`TimedLease`](crate::TimedLease) that was obtained, with its end. It is no guard: nothing happens when
/// it is dropped, and nobody tells when it is over.
#[derive(Debug, Clone)]
pub struct Obtained {
    slot: u32,
    end: SystemTime,
    /// Time on this machine until which it lasts, however its clock is set meanwhile.
    last: Option<Instant>,
}

impl Obtained {
    /// `begun` is a moment before `end` was counted from the clock, by `duration`.
    pub(super) fn new(slot: u32, end: SystemTime, begun: Instant, duration: Duration) -> Self {
        Self { slot, end, last: begun.checked_add(duration) }
    }

    /// Number of the slot, counted from 0; 0 for a lease with one.
    pub fn slot(&self) -> u32 {
        self.slot
    }

    /// Time at which others may obtain it, by their clocks.
    pub fn end(&self) -> SystemTime {
        self.end
    }

    /// Time that is left, by the clock of this machine; zero once it is over. Where others' clocks are ahead
    /// they count it as over earlier, by as much.
    pub fn remaining(&self) -> Duration {
        let by_clock = self.end.duration_since(SystemTime::now()).unwrap_or_default();
        let passed = |last: Instant| last.saturating_duration_since(Instant::now());
        by_clock.min(self.last.map_or(Duration::MAX, passed))
    }

    /// True while time is [left](Self::remaining).
    pub fn is_valid(&self) -> bool {
        !self.remaining().is_zero()
    }
}
