use serde::Serialize;
use std::fmt;

/// Kind of recipe at a path. Serialized and printed as in a report, such as `read_write_lock`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Kind {
    /// A mutex.
    Mutex,
    /// A read/write lock.
    ReadWriteLock,
    /// A semaphore.
    Semaphore,
    /// An election.
    Election,
    /// A queue.
    Queue,
    /// Instances of a service.
    Service,
    /// A folder of services.
    Registry,
    /// Members of a group.
    Membership,
    /// A configuration.
    Config,
    /// A shared value.
    Value,
    /// A counter.
    Counter,
    /// A barrier that is set.
    Barrier,
    /// A double barrier.
    DoubleBarrier,
    /// A lease that is held until a given time, by a persistent node.
    TimedLease,
    /// A set of items that members share.
    Partition,
    /// A node that is none of these.
    Plain,
    /// No node.
    Absent,
    /// A node that may not be read.
    Unreadable,
}

impl Kind {
    /// Returns the name, as in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Mutex => "mutex",
            Self::ReadWriteLock => "read_write_lock",
            Self::Semaphore => "semaphore",
            Self::Election => "election",
            Self::Queue => "queue",
            Self::Service => "service",
            Self::Registry => "registry",
            Self::Membership => "membership",
            Self::Config => "config",
            Self::Value => "value",
            Self::Counter => "counter",
            Self::Barrier => "barrier",
            Self::DoubleBarrier => "double_barrier",
            Self::TimedLease => "timed_lease",
            Self::Partition => "partition",
            Self::Plain => "plain",
            Self::Absent => "absent",
            Self::Unreadable => "unreadable",
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
