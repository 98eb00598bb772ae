use super::time;
use serde::Serialize;
use std::time::SystemTime;

/// A lease that is held until a time stored in its node: Docent's `TimedLease` and kazoo's
/// `NonBlockingLease`.
///
/// Serialized as `holder`, `end_ms`, in milliseconds since 1970, and `is_over`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct TimedLease {
    /// Holder. `None` if the node has another version, or may not be read.
    pub holder: Option<String>,
    /// End of the lease, by the clock of the holder's machine, in whole seconds.
    #[serde(rename = "end_ms", serialize_with = "time::ms_if_known")]
    pub end: Option<SystemTime>,
    /// True if the end is before the servers' time.
    pub is_over: Option<bool>,
}
