use super::{Contender, NodeText, Since, session, time};
use serde::Serialize;
use std::time::SystemTime;

/// Items of a queue, and its consumers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Queue {
    /// Layout of the items.
    pub layout: QueueLayout,
    /// Number of items, including claimed and delayed ones.
    pub depth: usize,
    /// Number of items that may not be delivered yet; 0 if the layout has no delays.
    pub delayed: usize,
    /// Time at which the next of these may be delivered; serialized as `next_due_ms`, in milliseconds since
    /// 1970.
    #[serde(rename = "next_due_ms", serialize_with = "time::ms_if_known")]
    pub next_due: Option<SystemTime>,
    /// Item that is delivered next: the first one that is neither delayed nor claimed.
    pub head: Option<QueueItem>,
    /// Number of claimed items. `None` for queues without acknowledgements, and if the claims are not known.
    /// Curator's claims are at a lock path that the queue does not record. Such a path is recognised while it
    /// has a claim. It must be a child of the queue's node, or a sibling whose name starts with the queue's
    /// name and has `lock` in the rest.
    pub claimed: Option<usize>,
    /// Claims that were read.
    pub claims: Vec<Claim>,
    /// Number of dead letters; `None` if the layout has none.
    pub dead: Option<usize>,
    /// Dead letters that were read, the oldest first.
    pub dead_letters: Vec<DeadLetter>,
    /// Number of consumers that wait for an item; `None` if the layout does not show it.
    pub idle: Option<usize>,
    /// Idle consumers that were read, the next one first.
    pub consumers: Vec<Contender>,
}

/// An item of a queue.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct QueueItem {
    /// Name of the node.
    pub name: String,
    /// Priority, if the layout has priorities.
    pub priority: Option<i64>,
    /// Length of the node's data in bytes, including the layout's framing; `None` if it may not be read.
    pub size: Option<usize>,
    /// Time at which the item was put.
    #[serde(flatten)]
    pub since: Option<Since>,
}

/// Claim of an item by a consumer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Claim {
    /// Name of the item's node.
    pub item: String,
    /// Time of the claim.
    #[serde(flatten)]
    pub since: Option<Since>,
    /// Session that owns the claim; serialized as text such as `"0x10000a3f"`.
    #[serde(serialize_with = "session::text")]
    pub session: Option<i64>,
    /// Data of the claim: the consumer's identity.
    pub identity: Option<NodeText>,
}

/// An item that is not delivered any more, with the stored reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct DeadLetter {
    /// Name of the letter's node.
    pub name: String,
    /// Length of the letter's data in bytes: the item, and a line about it before the item.
    pub size: Option<usize>,
    /// Time at which it became a dead letter.
    #[serde(flatten)]
    pub since: Option<Since>,
    /// Name of the reason: `too-many-deliveries`, `undecodable`, `rejected`, or one written by a later
    /// version. `None` if the letter cannot be read, like the next three fields.
    pub reason: Option<String>,
    /// Details of the reason, such as the last error; at most 500 bytes.
    pub detail: Option<String>,
    /// Number of deliveries, if counted.
    pub deliveries: Option<u32>,
    /// Name of the item's node in the queue.
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
    /// Curator's `DistributedQueue` and its variants with ids, priorities and delays.
    Curator,
    /// Only claims, at a lock path of one of Curator's queues: the items are at another path.
    CuratorClaims,
    /// The queue recipe of ZooKeeper's documentation: Curator's and Docent's simple queues.
    Simple,
    /// kazoo's `Queue`.
    Kazoo,
    /// kazoo's `LockingQueue`.
    KazooLocking,
}
