#![doc = include_str!("front.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]

pub use docent_codec::{Codec, CodecError, Json, Raw};
pub use docent_config::{
    Config, ConfigTree, Counter, PublishError, SharedCount, SharedValue, Snapshot, SubscribeError,
    Subscription,
};
#[cfg(feature = "tls")]
#[cfg_attr(docsrs, doc(cfg(feature = "tls")))]
pub use docent_core::Tls;
pub use docent_core::{
    Acl, BootClock, Children, ChildrenCache, ChildrenEvent, ChildrenEvents, ChildrenSnapshot, Client,
    ClientBuilder, Clock, ClockCheck, ConnectionState, ConnectionStatus, CreateMode, Created, Error,
    ErrorKind, Fence, Health, Lost, LostReason, Node, NodeAcl, NodeCache, NodeChanges, ParentKind,
    ParseFenceError, Participant, Permissions, RetryPolicy, Role, RollbackPolicy, SecretString, Stat,
    StateWatcher, Timestamp, TokioClock, Transaction, TransactionResult, WatchStream,
};
#[cfg(feature = "tower")]
#[cfg_attr(docsrs, doc(cfg(feature = "tower")))]
pub use docent_discovery::Discovered;
pub use docent_discovery::{
    Instance, Instances, Member, MemberChange, MemberChanges, Members, Membership, OutlierPolicy, Peer,
    PickError, PickPolicy, Picked, Presence, Registration, RegistrationStatus, Registry, RegistryBuilder,
    RegistryLayout, Service, ServiceBuilder, ServiceChange, ServiceChanges, ServiceNames, ServiceType,
    Unreadable, UriPart, UriSpec,
};
pub use docent_election::{
    Election, ElectionBuilder, ElectionLayout, ElectionRun, Leader, Leaders, Leadership,
};
pub use docent_locks::{
    AcquireError, AnyLock, Barrier, DoubleBarrier, Entered, MultiGuard, MultiLock, Mutex, MutexBuilder,
    MutexGuard, Owner, Permit, ReadGuard, RwLock, RwLockBuilder, Semaphore, SharedLimit, WriteGuard,
};
pub use docent_queue::{
    AckError, DeadLetter, DeadLetters, DeadReason, Deliveries, Delivery, PeekError, PutError, Queue,
    QueueBuilder, QueueLayout, SimpleQueue,
};

/// Configuration, shared values and counters: the types besides those at the top.
pub mod config {
    pub use docent_config::*;
}

/// Transport that reaches the servers, for applications that bring one of their own.
pub mod transport {
    pub use docent_core::{Dialled, Io, ServerAddress, TcpTransport, Transport};
}

/// Tickets and holds, for authors of recipes of their own.
pub mod recipe {
    pub use docent_core::recipe::*;
}

#[cfg(docent_planted)]
#[doc(hidden)]
pub use docent_core::planted;
#[cfg(feature = "zookeeper-client")]
pub use docent_core::zookeeper_client;

/// The embedded server, for development and tests. In memory, a single node: production means a ZooKeeper
/// ensemble.
#[cfg(feature = "server")]
pub mod server {
    pub use docent_server::*;
}

/// The guides, whose code is compiled with the tests of the documentation.
#[cfg(doctest)]
mod guides {
    #[doc = include_str!("../../../docs/guide/config.md")]
    mod config {}
    #[doc = include_str!("../../../docs/guide/discovery.md")]
    mod discovery {}
    #[doc = include_str!("../../../docs/guide/election.md")]
    mod election {}
    #[doc = include_str!("../../../docs/guide/failure-model.md")]
    mod failure_model {}
    #[doc = include_str!("../../../docs/guide/from-curator.md")]
    mod from_curator {}
    #[doc = include_str!("../../../docs/guide/guarantees.md")]
    mod guarantees {}
    #[doc = include_str!("../../../docs/guide/how-it-works.md")]
    mod how_it_works {}
    #[doc = include_str!("../../../docs/guide/locks.md")]
    mod locks {}
    #[doc = include_str!("../../../docs/guide/membership.md")]
    mod membership {}
    #[doc = include_str!("../../../docs/guide/queue.md")]
    mod queue {}
    #[doc = include_str!("../../../docs/guide/retries.md")]
    mod retries {}
    #[doc = include_str!("../../../docs/guide/security.md")]
    mod security {}
    #[doc = include_str!("../../../docs/guide/start.md")]
    mod start {}
}
