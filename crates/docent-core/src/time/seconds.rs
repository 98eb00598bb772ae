use std::time::Duration;

/// A duration in the log: seconds with milliseconds.
pub(crate) fn seconds(duration: Duration) -> String {
    format!("{:.3} s", duration.as_secs_f64())
}
