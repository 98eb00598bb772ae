use docent_core::Stat;
use std::time::SystemTime;

/// Revision of a node's value: the transactions that tell it from all other values the node has had.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Revision {
    /// Transaction that created the node.
    pub czxid: i64,
    /// Transaction that wrote the value. It increases from each value to the next, also over deletion and
    /// creation.
    pub mzxid: i64,
    /// Number of values before it since the node was created.
    pub version: i32,
    /// When it was written, by the servers' clock, in whole milliseconds.
    pub modified: SystemTime,
}

impl Revision {
    /// True when a node with this stat has this value.
    pub(crate) fn is(&self, stat: &Stat) -> bool {
        (stat.czxid, stat.mzxid, stat.version) == (self.czxid, self.mzxid, self.version)
    }
}

impl From<&Stat> for Revision {
    fn from(stat: &Stat) -> Self {
        Self { czxid: stat.czxid, mzxid: stat.mzxid, version: stat.version, modified: stat.modified }
    }
}
