use super::{Contender, Member};
use serde::Serialize;

/// A set of items that members share: Docent's `Partitioner` and kazoo's `SetPartitioner`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Partition {
    /// The members, in the order of their nodes' names.
    pub members: Vec<Member>,
    /// The items that somebody holds or held, in the order of their names.
    pub items: Vec<PartitionItem>,
}

/// One item of a shared set.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct PartitionItem {
    /// The item.
    pub name: String,
    /// The holder of its lock.
    pub holder: Option<Contender>,
}
