use docent_core::recipe::since_1970_ms;
use serde::ser::{Serialize, SerializeStruct, Serializer};
use std::time::SystemTime;

/// A lease that is held until a time stored in its node: Docent's `TimedLease` and kazoo's
/// `NonBlockingLease`.
///
/// Serialized as `holder`, `end_ms`, in milliseconds since 1970, and `is_over`.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct TimedLease {
    /// Holder. `None` if the node has another version, or may not be read.
    pub holder: Option<String>,
    /// End of the lease, by the clock of the holder's machine, in whole seconds.
    pub end: Option<SystemTime>,
    /// True if the end is before the servers' time.
    pub is_over: Option<bool>,
}

impl Serialize for TimedLease {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = serializer.serialize_struct("TimedLease", 3)?;
        fields.serialize_field("holder", &self.holder)?;
        fields.serialize_field("end_ms", &self.end.map(since_1970_ms))?;
        fields.serialize_field("is_over", &self.is_over)?;
        fields.end()
    }
}
