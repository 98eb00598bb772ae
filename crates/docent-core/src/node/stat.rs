//! Public types about nodes: modes, stats, results. Independent of the wire format.

use crate::node::Acl;
use crate::time::time_ms;
use bytes::Bytes;
use docent_proto as proto;
use serde::{Serialize, Serializer};
use std::fmt;
use std::time::{Duration, SystemTime};

/// Mode of a new node: its lifetime, and whether its name gets a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum CreateMode {
    /// Exists until it is deleted.
    #[default]
    Persistent,
    /// Exists until it is deleted or this session ends. Cannot have children.
    Ephemeral,
    /// Like `Persistent`; the parent's counter is appended to the name as ten digits.
    PersistentSequential,
    /// Like `Ephemeral`; the parent's counter is appended to the name as ten digits.
    EphemeralSequential,
    /// Exists until it is deleted. The server deletes it some time after its last child was deleted.
    Container,
    /// Exists until it is deleted, or until it had neither a change nor a child for this long, from 1 ms to
    /// 2^40 ms. Disabled by default on servers; then the error is `Unsupported`.
    PersistentTtl(Duration),
    /// Like `PersistentTtl`; the parent's counter is appended to the name as ten digits.
    PersistentSequentialTtl(Duration),
}

impl CreateMode {
    pub(crate) fn to_proto(self) -> (proto::CreateMode, i64) {
        let ttl_ms = |ttl: Duration| i64::try_from(ttl.as_millis()).unwrap_or(i64::MAX);
        match self {
            Self::Persistent => (proto::CreateMode::Persistent, 0),
            Self::Ephemeral => (proto::CreateMode::Ephemeral, 0),
            Self::PersistentSequential => (proto::CreateMode::PersistentSequential, 0),
            Self::EphemeralSequential => (proto::CreateMode::EphemeralSequential, 0),
            Self::Container => (proto::CreateMode::Container, 0),
            Self::PersistentTtl(ttl) => (proto::CreateMode::PersistentTtl, ttl_ms(ttl)),
            Self::PersistentSequentialTtl(ttl) => (proto::CreateMode::PersistentSequentialTtl, ttl_ms(ttl)),
        }
    }

    /// Returns the time to live if there is one and servers would refuse it.
    pub(crate) fn bad_ttl(self) -> Option<Duration> {
        const LONGEST_MS: u128 = 1 << 40;
        self.ttl().filter(|ttl| !(1..=LONGEST_MS).contains(&ttl.as_millis()))
    }

    pub(crate) fn ttl(self) -> Option<Duration> {
        match self {
            Self::PersistentTtl(ttl) | Self::PersistentSequentialTtl(ttl) => Some(ttl),
            _ => None,
        }
    }

    /// Returns the mode with which a node of this mode is re-created under the same name.
    pub(crate) fn without_sequence(self) -> Self {
        match self {
            Self::EphemeralSequential => Self::Ephemeral,
            Self::PersistentSequential => Self::Persistent,
            Self::PersistentSequentialTtl(ttl) => Self::PersistentTtl(ttl),
            other => other,
        }
    }
}

impl fmt::Display for CreateMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Persistent => f.write_str("persistent"),
            Self::Ephemeral => f.write_str("ephemeral"),
            Self::PersistentSequential => f.write_str("persistent sequential"),
            Self::EphemeralSequential => f.write_str("ephemeral sequential"),
            Self::Container => f.write_str("container"),
            Self::PersistentTtl(ttl) => write!(f, "persistent with ttl {ttl:?}"),
            Self::PersistentSequentialTtl(ttl) => write!(f, "persistent sequential with ttl {ttl:?}"),
        }
    }
}

/// Metadata that the server keeps about a node.
///
/// Serialized with the same names, with two exceptions. The times are `created_ms` and `modified_ms`, in
/// milliseconds since 1970. `owner` is the session id as text (`"0x10000a3f"`), because JavaScript cannot
/// represent such long numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[non_exhaustive]
pub struct Stat {
    /// Transaction that created the node. Two nodes at one path with the same number are the same node.
    pub czxid: i64,
    /// Transaction that last changed the node's data.
    pub mzxid: i64,
    /// Transaction that last changed the set of children.
    pub pzxid: i64,
    /// Creation time by the server's clock.
    #[serde(rename = "created_ms", serialize_with = "time_ms")]
    pub created: SystemTime,
    /// Time of the last change of data by the server's clock.
    #[serde(rename = "modified_ms", serialize_with = "time_ms")]
    pub modified: SystemTime,
    /// Number of changes of the data since the node was created.
    pub version: i32,
    /// Number of changes of the set of children.
    pub cversion: i32,
    /// Number of changes of the access control list.
    pub aversion: i32,
    /// The session that owns the node, if it is ephemeral.
    #[serde(serialize_with = "owner_text")]
    pub owner: Option<i64>,
    /// Length of the data in bytes.
    pub data_length: usize,
    /// Number of children.
    pub num_children: usize,
}

fn owner_text<S: Serializer>(owner: &Option<i64>, serializer: S) -> Result<S::Ok, S::Error> {
    owner.map(|session_id| format!("{session_id:#x}")).serialize(serializer)
}

impl From<proto::Stat> for Stat {
    fn from(stat: proto::Stat) -> Self {
        let time = |ms| SystemTime::UNIX_EPOCH + Duration::from_millis(u64::try_from(ms).unwrap_or(0));
        Self {
            czxid: stat.czxid,
            mzxid: stat.mzxid,
            pzxid: stat.pzxid,
            created: time(stat.ctime),
            modified: time(stat.mtime),
            version: stat.version,
            cversion: stat.cversion,
            aversion: stat.aversion,
            owner: Some(stat.ephemeral_owner).filter(|owner| *owner != 0),
            data_length: usize::try_from(stat.data_length).unwrap_or(0),
            num_children: usize::try_from(stat.num_children).unwrap_or(0),
        }
    }
}

/// A node that was created.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Created {
    /// Path of the node, including the number if it is sequential.
    pub path: String,
    /// Stat of the node.
    pub stat: Stat,
}

/// A node's data, read together with its stat.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Node {
    /// The data; empty if the data is null.
    pub data: Bytes,
    /// The stat.
    pub stat: Stat,
}

// The data is not printed.
impl fmt::Debug for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Node")
            .field("data", &format_args!("{} bytes", self.data.len()))
            .field("stat", &self.stat)
            .finish()
    }
}

/// The children of a node.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Children {
    /// Names of the children, in no particular order.
    pub names: Vec<String>,
    /// The stat of the parent.
    pub stat: Stat,
}

/// The access control list of a node.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct NodeAcl {
    /// Entries of the list.
    pub entries: Vec<Acl>,
    /// The stat of the node.
    pub stat: Stat,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sequential_node_is_re_created_with_its_number() {
        let ttl = Duration::from_secs(2);
        assert_eq!(CreateMode::EphemeralSequential.without_sequence(), CreateMode::Ephemeral);
        assert_eq!(CreateMode::PersistentSequential.without_sequence(), CreateMode::Persistent);
        assert_eq!(CreateMode::PersistentSequentialTtl(ttl).without_sequence().ttl(), Some(ttl));
    }
}
