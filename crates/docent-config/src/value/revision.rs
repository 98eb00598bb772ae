use docent_core::Stat;
use std::time::SystemTime;

/// Revision of a node's value: the transactions that distinguish it from all other values of the node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Revision {
    /// Transaction that created the node.
    pub czxid: i64,
    /// Transaction that wrote the value. It increases from each value to the next, even if the node is
    /// deleted and re-created.
    pub mzxid: i64,
    /// Number of values before this one since the node was created.
    pub version: i32,
    /// Time of the write by the servers' clock, in whole milliseconds.
    pub modified: SystemTime,
}

impl Revision {
    /// Returns true if a node with this stat has this value.
    pub(crate) fn is(&self, stat: &Stat) -> bool {
        (stat.czxid, stat.mzxid, stat.version) == (self.czxid, self.mzxid, self.version)
    }
}

impl From<&Stat> for Revision {
    fn from(stat: &Stat) -> Self {
        Self { czxid: stat.czxid, mzxid: stat.mzxid, version: stat.version, modified: stat.modified }
    }
}
