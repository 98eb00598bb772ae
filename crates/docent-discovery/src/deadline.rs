use std::time::Duration;
use tokio::time::Instant;

/// As good as never.
const FAR: Duration = Duration::from_secs(30 * 365 * 86_400);

/// The time `duration` after `now`, also for durations that no clock can show.
pub(crate) fn after(now: Instant, duration: Duration) -> Instant {
    now.checked_add(duration).unwrap_or_else(|| now + FAR)
}
