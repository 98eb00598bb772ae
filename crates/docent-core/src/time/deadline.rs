//! Ends of timeouts of any length.

use std::time::Duration;
use tokio::time::Instant;

/// Practically never: a timeout beyond the range of the clock has no end.
const A_CENTURY: Duration = Duration::from_secs(100 * 365 * 24 * 60 * 60);

/// Returns the time `duration` after `now`, including durations that the clock cannot represent.
pub fn after(now: Instant, duration: Duration) -> Instant {
    now + duration.min(A_CENTURY)
}

/// Returns the end of a `timeout` that starts now.
pub(crate) fn deadline(timeout: Duration) -> Instant {
    after(Instant::now(), timeout)
}
