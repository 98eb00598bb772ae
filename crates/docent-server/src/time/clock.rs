use super::wire::millis;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::time::{Instant, Sleep, sleep};

/// Milliseconds since 1970 that never go back. By default, the clock is the system time at the start,
/// advanced by tokio's clock. It therefore also pauses with tokio's clock in tests.
#[derive(Clone)]
pub(crate) struct Clock {
    since_1970: Arc<dyn Fn() -> Duration + Send + Sync>,
    latest_ms: Arc<AtomicI64>,
}

impl Clock {
    pub(crate) fn new(since_1970: impl Fn() -> Duration + Send + Sync + 'static) -> Self {
        Self { since_1970: Arc::new(since_1970), latest_ms: Arc::new(AtomicI64::new(0)) }
    }

    /// Creates the default clock. Must be called in a runtime with time enabled.
    pub(crate) fn of_tokio() -> Self {
        let start = Instant::now();
        let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self::new(move || since_1970 + start.elapsed())
    }

    pub(crate) fn since_1970(&self) -> Duration {
        (self.since_1970)()
    }

    pub(crate) fn now_ms(&self) -> i64 {
        // The clocks of a simulation's hosts differ slightly, and a user's clock may go back.
        let now = millis((self.since_1970)());
        self.latest_ms.fetch_max(now, Ordering::Relaxed).max(now)
    }

    /// Waits until [`now_ms`](Self::now_ms) reaches `time_ms`, on the clock of the runtime that polls the
    /// future.
    pub(crate) fn sleep_until(&self, time_ms: i64) -> Sleep {
        let at = Duration::from_millis(u64::try_from(time_ms).unwrap_or(0));
        sleep(at.saturating_sub((self.since_1970)()))
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Clock").finish_non_exhaustive()
    }
}
