use super::{Contender, Member};
use serde::Serialize;

/// A set of items that members share: Docent's `Partitioner` and kazoo's `SetPartitioner`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Partition {
    /// Members in the order of their nodes' names.
    pub members: Vec<Member>,
    /// Items that are or were held, in the order of their names.
    pub items: Vec<PartitionItem>,
}

/// One item of a shared set.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct PartitionItem {
    /// Name of the item.
    pub name: String,
    /// Holder of the item's lock.
    pub holder: Option<Contender>,
}
