use docent_core::recipe::since_1970_ms;
use serde::ser::{Serialize, SerializeStruct, Serializer};
use std::time::{Duration, SystemTime};

/// A time recorded by the servers, and its age by the servers' clock.
///
/// Serialized as `since_ms`, in milliseconds since 1970, and `age_ms`. Two values are equal if their times
/// are, regardless of their ages.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Since {
    /// Time by the servers' clock.
    pub at: SystemTime,
    /// Time between `at` and the report's [`ServerTime`]; zero if the servers' clock went back.
    pub age: Duration,
    /// True if the age is a lower bound, because the current time is known only from the [newest
    /// time](TimeSource::NewestStat) in any node. Not serialized, because the report's clock shows it.
    pub is_at_least: bool,
}

impl PartialEq for Since {
    fn eq(&self, other: &Self) -> bool {
        self.at == other.at
    }
}

impl Eq for Since {}

impl Serialize for Since {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = serializer.serialize_struct("Since", 2)?;
        fields.serialize_field("since_ms", &since_1970_ms(self.at))?;
        fields.serialize_field("age_ms", &u64::try_from(self.age.as_millis()).unwrap_or(u64::MAX))?;
        fields.end()
    }
}

/// Time of the servers' clock that the ages of a report are relative to. The local clock is not used.
///
/// Serialized as `now_ms`, in milliseconds since 1970, and `source`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct ServerTime {
    /// Time by the servers' clock.
    pub now: SystemTime,
    /// Origin of the time.
    pub source: TimeSource,
}

impl ServerTime {
    /// Returns a time with its age.
    pub(crate) fn since(&self, at: SystemTime) -> Since {
        let age = self.now.duration_since(at).unwrap_or_default();
        Since { at, age, is_at_least: self.source == TimeSource::NewestStat }
    }
}

impl Serialize for ServerTime {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = serializer.serialize_struct("ServerTime", 2)?;
        fields.serialize_field("now_ms", &since_1970_ms(self.now))?;
        fields.serialize_field("source", &self.source)?;
        fields.end()
    }
}

/// Origin of a [`ServerTime`]. Serialized as `own_node` and `newest_stat`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum TimeSource {
    /// An ephemeral node that was created to read the clock, and deleted: the leader's clock, as old as the
    /// report.
    OwnNode,
    /// The newest time among the nodes that were read. The current time is at least that, so ages are lower
    /// bounds.
    NewestStat,
}
