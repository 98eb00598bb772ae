//! Serialization of times as numbers of milliseconds, in fields whose names end with `_ms`.

use serde::{Serialize, Serializer};
use std::time::{Duration, SystemTime};

/// Serializes a time as milliseconds since 1970; 0 for earlier times.
pub(crate) fn time_ms<S: Serializer>(time: &SystemTime, serializer: S) -> Result<S::Ok, S::Error> {
    since_1970_ms(*time).serialize(serializer)
}

/// Serializes a duration as milliseconds, if there is one.
pub(crate) fn duration_ms<S: Serializer>(
    duration: &Option<Duration>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    duration.map(ms).serialize(serializer)
}

/// Returns milliseconds since 1970; 0 for earlier times.
pub fn since_1970_ms(time: SystemTime) -> u64 {
    ms(time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default())
}

fn ms(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
