use super::{Since, session, time};
use serde::Serialize;
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
    /// Readers that report what they run, in the order of their ids. Other readers are not visible.
    pub readers: Vec<ConfigReader>,
}

impl ConfigReport {
    /// Returns the number of readers that run the current value.
    pub fn up_to_date(&self) -> usize {
        self.readers.iter().filter(|reader| reader.is_current == Some(true)).count()
    }
}

/// A process that reports which value of a configuration it runs.
///
/// The facts from its node are `None` if the node may not be read, was omitted, or holds something else.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ConfigReader {
    /// Id: the name of its node.
    pub id: String,
    /// Version of the value that it runs.
    pub version: Option<i32>,
    /// Transaction that wrote this value.
    pub mzxid: Option<i64>,
    /// True if this is the current value.
    pub is_current: Option<bool>,
    /// Time at which it reported this value.
    #[serde(flatten)]
    pub since: Option<Since>,
    /// Session that owns the node; serialized as text such as `"0x10000a3f"`.
    #[serde(serialize_with = "session::text")]
    pub session: Option<i64>,
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
    #[serde(rename = "modified_ms", serialize_with = "time::ms")]
    pub modified: SystemTime,
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
