use super::Since;
use docent_core::recipe::since_1970_ms;
use serde::{Serialize, Serializer};
use std::time::SystemTime;

/// A configuration with its history.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ConfigReport {
    /// Number of values before this one since the node was created.
    pub version: i32,
    /// Length of the value in bytes.
    pub size: usize,
    /// Time of the last change.
    pub modified: Since,
    /// Earlier values that are kept, the latest first.
    pub history: Vec<EarlierValue>,
}

/// An earlier value of a configuration, parsed from the name of its node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct EarlierValue {
    /// Transaction that wrote the value, by which it can be published again.
    pub mzxid: i64,
    /// Number of values before this one since the node was created.
    pub version: i32,
    /// Time of the write, by the servers' clock; serialized as `modified_ms`, in milliseconds since 1970.
    #[serde(rename = "modified_ms", serialize_with = "ms")]
    pub modified: SystemTime,
}

fn ms<S: Serializer>(time: &SystemTime, serializer: S) -> Result<S::Ok, S::Error> {
    since_1970_ms(*time).serialize(serializer)
}

/// A node with a value: a shared value, or a configuration without history.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Value {
    /// Number of values before this one since the node was created.
    pub version: i32,
    /// Length of the value in bytes.
    pub size: usize,
    /// Time of the last change.
    pub modified: Since,
}

/// A node with a number: a counter, a shared count, or the limit of a semaphore.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Counter {
    /// Number in decimal. kazoo's numbers may have a fraction.
    pub number: String,
    /// Format of the number.
    pub format: NumberFormat,
    /// Number of changes since the node was created.
    pub version: i32,
    /// Time of the last change.
    pub modified: Since,
}

/// Format of a number in a node. Serialized as `i32`, `i64` and `text`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum NumberFormat {
    /// 32 bits, as in Curator's `SharedCount` and `DistributedAtomicInteger`.
    I32,
    /// 64 bits, as in Docent's `Counter` and Curator's `DistributedAtomicLong`.
    I64,
    /// Decimal, as in kazoo's `Counter`.
    Text,
}
