use std::time::Duration;

/// Formats a duration for the log, in seconds with milliseconds.
pub(crate) fn seconds(duration: Duration) -> String {
    format!("{:.3} s", duration.as_secs_f64())
}
