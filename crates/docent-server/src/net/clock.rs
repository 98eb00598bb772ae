use crate::config::millis;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::time::Instant;

/// Milliseconds since 1970 that never go back: the system's time at the start, and tokio's from there on. Under tokio's
/// paused time the server's time stands still too.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Clock {
    start: Instant,
    start_ms: i64,
}

impl Clock {
    pub(crate) fn new() -> Self {
        let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self { start: Instant::now(), start_ms: millis(since_1970) }
    }

    pub(crate) fn now_ms(&self) -> i64 {
        self.start_ms + millis(self.start.elapsed())
    }

    /// The instant at which [`now_ms`](Self::now_ms) becomes `time_ms`.
    pub(crate) fn instant(&self, time_ms: i64) -> Instant {
        let after = u64::try_from(time_ms - self.start_ms).unwrap_or(0);
        self.start + Duration::from_millis(after)
    }
}
