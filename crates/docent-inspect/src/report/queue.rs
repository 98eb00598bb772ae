use super::{Contender, NodeText, Since, session};
use docent_core::recipe::since_1970_ms;
use serde::{Serialize, Serializer};
use std::time::SystemTime;

/// Items of a queue, and those who work at them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Queue {
    /// Layout of the items.
    pub layout: QueueLayout,
    /// Number of items, claimed ones and delayed ones too.
    pub depth: usize,
    /// Number of items that may not be handed out yet; 0 where the layout has no delays.
    pub delayed: usize,
    /// Time at which the next of those may be; serialized as `next_due_ms`, in milliseconds since 1970.
    #[serde(rename = "next_due_ms", serialize_with = "ms")]
    pub next_due: Option<SystemTime>,
    /// The item that is handed out next: the first one that is neither delayed nor claimed.
    pub head: Option<QueueItem>,
    /// Number of claimed items. `None` for queues without acknowledgements, and where the claims are not
    /// known: Curator's stand at a lock path that the queue does not name, which is recognised while it has
    /// a claim and is either a child of the queue's node, or beside it under a name that begins with the
    /// queue's and has `lock` in the rest.
    pub claimed: Option<usize>,
    /// The claims that were read.
    pub claims: Vec<Claim>,
    /// Number of dead letters; `None` where the layout has none.
    pub dead: Option<usize>,
    /// The dead letters that were read, the oldest first.
    pub dead_letters: Vec<DeadLetter>,
    /// Number of consumers that wait for an item; `None` where the layout does not tell.
    pub idle: Option<usize>,
    /// The idle consumers that were read, the next one first.
    pub consumers: Vec<Contender>,
}

fn ms<S: Serializer>(time: &Option<SystemTime>, serializer: S) -> Result<S::Ok, S::Error> {
    time.map(since_1970_ms).serialize(serializer)
}

/// One item of a queue.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct QueueItem {
    /// Name of its node.
    pub name: String,
    /// Its priority, where the layout has priorities.
    pub priority: Option<i64>,
    /// Length of its node's data in bytes, with the layout's framing; `None` where it may not be read.
    pub size: Option<usize>,
    /// Time at which it was put.
    #[serde(flatten)]
    pub since: Option<Since>,
}

/// Claim of an item by a consumer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Claim {
    /// Name of the item's node.
    pub item: String,
    /// Time at which it was claimed.
    #[serde(flatten)]
    pub since: Option<Since>,
    /// The session that owns the claim; serialized as text such as `"0x10000a3f"`.
    #[serde(serialize_with = "session::text")]
    pub session: Option<i64>,
    /// Data of the claim: the consumer's identity.
    pub identity: Option<NodeText>,
}

/// Item that nobody gets any more, with the reason for it as it is stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct DeadLetter {
    /// Name of the letter's node.
    pub name: String,
    /// Length of the letter's data in bytes: the item's, and a line about it before.
    pub size: Option<usize>,
    /// Time at which it became a dead letter.
    #[serde(flatten)]
    pub since: Option<Since>,
    /// Name of the reason: `too-many-deliveries`, `undecodable`, `rejected`, or one that a later version
    /// wrote. Like the next three `None` where the letter cannot be read.
    pub reason: Option<String>,
    /// Text about the reason, such as the last error; at most 500 bytes.
    pub detail: Option<String>,
    /// Number of times that it was handed out, where that is counted.
    pub deliveries: Option<u32>,
    /// Name that the item's node had in the queue.
    pub item: Option<String>,
}

/// Layout of a queue. Serialized as `docent`, `curator`, `curator_claims`, `simple`, `kazoo` or
/// `kazoo_locking`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum QueueLayout {
    /// Docent's own, with acknowledgements.
    Docent,
    /// Curator's `DistributedQueue` and its kin with ids, priorities and delays.
    Curator,
    /// Claims alone, at a lock path of one of Curator's queues: the items are at another path.
    CuratorClaims,
    /// The queue of ZooKeeper's documentation: Curator's and Docent's simple queues.
    Simple,
    /// kazoo's `Queue`.
    Kazoo,
    /// kazoo's `LockingQueue`.
    KazooLocking,
}
