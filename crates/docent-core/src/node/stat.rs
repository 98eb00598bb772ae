//! Public types about nodes: modes, stats, results. Independent of the wire format.

use crate::node::Acl;
use crate::time::time_ms;
use bytes::Bytes;
use docent_proto as proto;
use serde::{Serialize, Serializer};
use std::fmt;
use std::time::{Duration, SystemTime};

/// Mode of a new node: its life, and whether its name gets a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum CreateMode {
    /// Until it is deleted.
    #[default]
    Persistent,
    /// Until it is deleted or this session ends. It cannot have children.
    Ephemeral,
    /// As `Persistent`; the parent's counter is appended to the name as ten digits.
    PersistentSequential,
    /// As `Ephemeral`; the parent's counter is appended to the name as ten digits.
    EphemeralSequential,
    /// Until it is deleted; the server deletes it some time after its last child went.
    Container,
    /// Until it is deleted or had neither a change nor a child for this long, in milliseconds from 1 to 2^40.
    /// Off by default on servers: then the error is `Unsupported`.
    PersistentTtl(Duration),
    /// As `PersistentTtl`; the parent's counter is appended to the name as ten digits.
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

    /// The time to live, when it has one and servers would refuse it.
    pub(crate) fn bad_ttl(self) -> Option<Duration> {
        const LONGEST_MS: u128 = 1 << 40;
        match self {
            Self::PersistentTtl(ttl) | Self::PersistentSequentialTtl(ttl) => {
                (!(1..=LONGEST_MS).contains(&ttl.as_millis())).then_some(ttl)
            }
            _ => None,
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

/// Facts that the server keeps about a node besides its data.
///
/// It is serialized with the same names, but for its times, which are `created_ms` and `modified_ms` in
/// milliseconds since 1970, and for `owner`, which is the number of the session as text (`"0x10000a3f"`):
/// JavaScript has no numbers that long.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[non_exhaustive]
pub struct Stat {
    /// Transaction that created the node: two nodes of one path with the same number are the same node.
    pub czxid: i64,
    /// Transaction that last changed its data.
    pub mzxid: i64,
    /// Transaction that last changed the set of children.
    pub pzxid: i64,
    /// Creation time by the server's clock.
    #[serde(rename = "created_ms", serialize_with = "time_ms")]
    pub created: SystemTime,
    /// Time of the last change of data by the server's clock.
    #[serde(rename = "modified_ms", serialize_with = "time_ms")]
    pub modified: SystemTime,
    /// Number of changes of data since the node was created.
    pub version: i32,
    /// Number of changes of the set of children.
    pub cversion: i32,
    /// Number of changes of the access control list.
    pub aversion: i32,
    /// The session that owns the node, when it is ephemeral.
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
    /// Its path, with the number if it is sequential.
    pub path: String,
    /// Its stat.
    pub stat: Stat,
}

/// A node's data read together with its stat.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Node {
    /// The data; empty also for null.
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
    /// Their names, in no order.
    pub names: Vec<String>,
    /// The stat of the parent.
    pub stat: Stat,
}

/// The access control list of a node.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct NodeAcl {
    /// Its entries.
    pub entries: Vec<Acl>,
    /// The stat of the node.
    pub stat: Stat,
}
