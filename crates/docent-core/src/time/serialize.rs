//! Times in what is serialized: numbers of milliseconds, in fields whose names end with `_ms`.

use serde::{Serialize, Serializer};
use std::time::{Duration, SystemTime};

/// Milliseconds since 1970; 0 for what was before.
pub(crate) fn time_ms<S: Serializer>(time: &SystemTime, serializer: S) -> Result<S::Ok, S::Error> {
    since_1970_ms(*time).serialize(serializer)
}

/// Milliseconds, if there is a duration.
pub(crate) fn duration_ms<S: Serializer>(
    duration: &Option<Duration>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    duration.map(ms).serialize(serializer)
}

/// Milliseconds since 1970; 0 for what was before.
pub fn since_1970_ms(time: SystemTime) -> u64 {
    ms(time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default())
}

fn ms(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
