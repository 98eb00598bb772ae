use docent_core::recipe::since_1970_ms;
use serde::{Serialize, Serializer};
use std::time::{Duration, SystemTime};

/// A time recorded by the servers, and its age by the servers' clock.
///
/// Serialized as `since_ms`, in milliseconds since 1970, and `age_ms`. Two values are equal if their times
/// are, regardless of their ages.
#[derive(Debug, Clone, Copy, Serialize)]
#[non_exhaustive]
pub struct Since {
    /// Time by the servers' clock.
    #[serde(rename = "since_ms", serialize_with = "ms")]
    pub at: SystemTime,
    /// Time between `at` and the report's [`ServerTime`]; zero if the servers' clock went back.
    #[serde(rename = "age_ms", serialize_with = "whole_ms")]
    pub age: Duration,
    /// True if the age is a lower bound, because the current time is known only from the [newest
    /// time](TimeSource::NewestStat) in any node. Not serialized, because the report's clock shows it.
    #[serde(skip)]
    pub is_at_least: bool,
}

impl PartialEq for Since {
    fn eq(&self, other: &Self) -> bool {
        self.at == other.at
    }
}

impl Eq for Since {}

/// Time of the servers' clock that the ages of a report are relative to. The local clock is not used.
///
/// Serialized as `now_ms`, in milliseconds since 1970, and `source`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ServerTime {
    /// Time by the servers' clock.
    #[serde(rename = "now_ms", serialize_with = "ms")]
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

/// Origin of a [`ServerTime`]. Serialized as `own_node` and `newest_stat`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
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

/// Serializes a time in milliseconds since 1970.
pub(super) fn ms<S: Serializer>(time: &SystemTime, serializer: S) -> Result<S::Ok, S::Error> {
    since_1970_ms(*time).serialize(serializer)
}

/// Like [`ms`], for a time that may be unknown.
pub(super) fn ms_if_known<S: Serializer>(
    time: &Option<SystemTime>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    time.map(since_1970_ms).serialize(serializer)
}

fn whole_ms<S: Serializer>(age: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    u64::try_from(age.as_millis()).unwrap_or(u64::MAX).serialize(serializer)
}
