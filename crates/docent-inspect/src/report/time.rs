use docent_core::recipe::since_1970_ms;
use serde::ser::{Serialize, SerializeStruct, Serializer};
use std::time::{Duration, SystemTime};

/// A time that the servers noted, and its age by the servers' clock.
///
/// It is serialized as `since_ms`, in milliseconds since 1970, and `age_ms`. Two are equal when they are of
/// the same time, whatever their age.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Since {
    /// The time, by the servers' clock.
    pub at: SystemTime,
    /// Time between it and the report's [`ServerTime`]; zero where the servers' clock went back.
    pub age: Duration,
    /// True when the age may be longer: the present is only known by the
    /// [newest time](TimeSource::NewestStat) in any node. Not serialized: the report's clock says so.
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

/// Time of the servers' clock that the ages of a report are counted to. The local clock has no part in it.
///
/// It is serialized as `now_ms`, in milliseconds since 1970, and `source`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct ServerTime {
    /// The time, by the servers' clock.
    pub now: SystemTime,
    /// Origin of it.
    pub source: TimeSource,
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
    /// An ephemeral node that was created for it, and deleted: the leader's clock, as old as the report.
    OwnNode,
    /// The newest time among the nodes that were read: the present is that or later, so ages are at least
    /// what they say.
    NewestStat,
}
