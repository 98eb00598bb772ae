use std::time::Duration;

/// Returns a duration in seconds for a field of a log event, rounded to milliseconds.
pub(crate) fn seconds(duration: Duration) -> f64 {
    (duration.as_secs_f64() * 1000.0).round() / 1000.0
}
