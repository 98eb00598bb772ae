use std::time::Duration;

/// Converts the minimum and maximum session timeout into milliseconds. If the maximum is below the minimum,
/// the minimum replaces it.
pub(crate) fn timeouts_ms(min: Duration, max: Duration) -> (i32, i32) {
    let wire = |timeout| i32::try_from(millis(timeout)).unwrap_or(i32::MAX).max(1);
    (wire(min), wire(max).max(wire(min)))
}

/// Converts a duration into milliseconds, capped at a value that is never reached.
pub(crate) fn millis(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX / 4).min(i64::MAX / 4)
}
