#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]

#[cfg(feature = "tls")]
#[cfg_attr(docsrs, doc(cfg(feature = "tls")))]
pub use docent_core::Tls;
pub use docent_core::{
    Acl, BootClock, Children, ChildrenCache, ChildrenEvent, ChildrenEvents, ChildrenSnapshot, Client,
    ClientBuilder, Clock, Connection, ConnectionState, CreateMode, Created, Error, ErrorKind, Fence, Health,
    Lost, LostReason, Node, NodeAcl, NodeCache, NodeChanges, ParentKind, ParseFenceError, Participant,
    Permissions, RetryPolicy, Role, RollbackPolicy, SecretString, Stat, StateWatcher, Timestamp, TokioClock,
    Transaction, TransactionResult, WatchStream,
};
pub use docent_election::{Election, ElectionBuilder, Layout, Leader, Leaders, Leadership, Run};
pub use docent_locks::{
    AcquireError, AnyLock, Barrier, DoubleBarrier, Entered, MultiGuard, MultiLock, Mutex, MutexGuard, Owner,
    Permit, ReadGuard, RwLock, Semaphore, SharedLimit, WriteGuard,
};

/// How servers are reached, for those who bring a transport of their own.
pub mod transport {
    pub use docent_core::{Dialled, Io, ServerAddress, TcpTransport, Transport};
}

/// Tickets and holds, for those who write recipes of their own.
pub mod recipe {
    pub use docent_core::recipe::*;
}

#[cfg(docent_planted)]
#[doc(hidden)]
pub use docent_core::planted;
#[cfg(feature = "zookeeper-client")]
pub use docent_core::zookeeper_client;

/// The embedded server, for development and tests. In memory, a single node: production means a ZooKeeper ensemble.
#[cfg(feature = "server")]
pub mod server {
    pub use docent_server::*;
}

/// The code of the guides is compiled.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/guide/locks.md")]
struct LocksGuide;
