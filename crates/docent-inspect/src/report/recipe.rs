use super::{
    Barrier, ConfigReport, Counter, DoubleBarrier, Election, Kind, Line, Membership, Partition, Plain, Queue,
    Registry, Semaphore, Service, TimedLease, Value,
};
use serde::Serialize;

/// Recipe at a path, and its state.
///
/// Serialized as an object with its kind as `kind`, beside the fields of the type in the variant.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Recipe {
    /// A mutex.
    Mutex(Line),
    /// A read/write lock.
    ReadWriteLock(Line),
    /// A semaphore.
    Semaphore(Semaphore),
    /// An election.
    Election(Election),
    /// A queue.
    Queue(Queue),
    /// Instances of a service.
    Service(Service),
    /// A folder of services.
    Registry(Registry),
    /// Members of a group.
    Membership(Membership),
    /// A configuration.
    Config(ConfigReport),
    /// A shared value.
    Value(Value),
    /// A counter.
    Counter(Counter),
    /// A barrier that is set.
    Barrier(Barrier),
    /// A double barrier.
    DoubleBarrier(DoubleBarrier),
    /// A lease that is held until a given time.
    TimedLease(TimedLease),
    /// A set of items that members share.
    Partition(Partition),
    /// A node that is none of these.
    Plain(Plain),
    /// No node.
    Absent,
    /// A node that may not be read.
    Unreadable,
}

impl Recipe {
    /// Returns the kind.
    pub fn kind(&self) -> Kind {
        match self {
            Self::Mutex(_) => Kind::Mutex,
            Self::ReadWriteLock(_) => Kind::ReadWriteLock,
            Self::Semaphore(_) => Kind::Semaphore,
            Self::Election(_) => Kind::Election,
            Self::Queue(_) => Kind::Queue,
            Self::Service(_) => Kind::Service,
            Self::Registry(_) => Kind::Registry,
            Self::Membership(_) => Kind::Membership,
            Self::Config(_) => Kind::Config,
            Self::Value(_) => Kind::Value,
            Self::Counter(_) => Kind::Counter,
            Self::Barrier(_) => Kind::Barrier,
            Self::DoubleBarrier(_) => Kind::DoubleBarrier,
            Self::TimedLease(_) => Kind::TimedLease,
            Self::Partition(_) => Kind::Partition,
            Self::Plain(_) => Kind::Plain,
            Self::Absent => Kind::Absent,
            Self::Unreadable => Kind::Unreadable,
        }
    }
}
