use std::time::Duration;

/// The shortest and the longest session timeout in the unit of the wire. The longest gives way when it is the
/// shorter one.
pub(crate) fn timeouts_ms(min: Duration, max: Duration) -> (i32, i32) {
    let wire = |timeout| i32::try_from(millis(timeout)).unwrap_or(i32::MAX).max(1);
    (wire(min), wire(max).max(wire(min)))
}

/// A duration in the unit of the wire; one that is too long for it never ends anyway.
pub(crate) fn millis(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX / 4).min(i64::MAX / 4)
}
