#![doc = include_str!("front.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]

#[doc(no_inline)]
pub use client::{Client, ConnectionState, Error, ErrorKind, Options};
#[doc(no_inline)]
pub use config::{Config, ConfigTree, Counter, SharedValue, Subscription};
#[doc(no_inline)]
pub use discovery::{Instance, Members, Membership, Registry, Service};
#[cfg(docent_planted)]
#[doc(hidden)]
pub use docent_core::planted;
#[cfg(feature = "zookeeper-client")]
pub use docent_core::zookeeper_client;
#[doc(no_inline)]
pub use election::{Election, Leadership};
#[doc(no_inline)]
pub use guard::{Fence, Lost, LostReason, Released};
#[doc(no_inline)]
pub use locks::{Barrier, DoubleBarrier, MultiLock, Mutex, RwLock, Semaphore};
#[doc(no_inline)]
pub use node::CreateMode;
#[doc(no_inline)]
pub use queue::{Delivery, Queue, SimpleQueue};
#[cfg(feature = "tls")]
#[cfg_attr(docsrs, doc(cfg(feature = "tls")))]
#[doc(no_inline)]
pub use transport::Tls;

/// The client, its settings, its state, and the error of its operations.
///
/// Guides: [a service's life](https://github.com/docent-rs/docent/blob/main/docs/guide/service.md),
/// [connection state and retries](https://github.com/docent-rs/docent/blob/main/docs/guide/retries.md),
/// [security](https://github.com/docent-rs/docent/blob/main/docs/guide/security.md).
pub mod client {
    pub use docent_core::{
        Client, ClientBuilder, ClientIdentity, ConnectionState, ConnectionStatus, Error, ErrorKind, Health,
        Options, ParentKind, ProvedIdentity, RetryPolicy, RollbackPolicy, SecretString, ShutdownNode,
        ShutdownReport, StateWatcher,
    };
}

/// Locks: mutexes, read/write locks, semaphores, several locks at a time, and barriers.
///
/// Guide: [locks](https://github.com/docent-rs/docent/blob/main/docs/guide/locks.md).
pub mod locks {
    pub use docent_core::{Participant, Role};
    pub use docent_locks::*;
}

/// Leader election, with work that is bound to the leadership.
///
/// Guide: [election](https://github.com/docent-rs/docent/blob/main/docs/guide/election.md).
pub mod election {
    #[doc(no_inline)]
    pub use docent_core::{Participant, Role};
    pub use docent_election::*;
}

/// What the guards of locks, elections and queues have in common: whether they are still held, their fences,
/// and the reasons for a loss.
///
/// Guides: [guarantees](https://github.com/docent-rs/docent/blob/main/docs/guide/guarantees.md), [the failure
/// model](https://github.com/docent-rs/docent/blob/main/docs/guide/failure-model.md), [fencing a
/// database](https://github.com/docent-rs/docent/blob/main/docs/guide/fencing.md).
pub mod guard {
    pub use docent_core::{Fence, Guard, Held, Lost, LostReason, ParseFenceError, Released};
}

/// Queues: one with acknowledgements and dead letters, and the simple queue of ZooKeeper's documentation.
///
/// Guide: [queue](https://github.com/docent-rs/docent/blob/main/docs/guide/queue.md).
pub mod queue {
    pub use docent_queue::*;
}

/// Service discovery: a registry, live views of services, and membership of groups.
///
/// Guides: [discovery](https://github.com/docent-rs/docent/blob/main/docs/guide/discovery.md),
/// [membership](https://github.com/docent-rs/docent/blob/main/docs/guide/membership.md).
pub mod discovery {
    #[cfg(feature = "tonic")]
    #[cfg_attr(docsrs, doc(cfg(feature = "tonic")))]
    pub use docent_discovery::BalancedChannel;
    pub use docent_discovery::*;
    #[cfg(feature = "tower")]
    #[cfg_attr(docsrs, doc(cfg(feature = "tower")))]
    pub use docent_discovery::{AttemptPolicy, Balanced, CallError, Discovered, Outcome, RetryBudget};
}

/// Configuration with live updates, shared values and counters.
///
/// Guide: [configuration](https://github.com/docent-rs/docent/blob/main/docs/guide/config.md).
pub mod config {
    pub use docent_config::*;
}

/// The current state of recipes below any path, whichever client created them: holders, waiters, leaders,
/// queues and services.
///
/// Guide: [observability](https://github.com/docent-rs/docent/blob/main/docs/guide/observability.md).
#[cfg(feature = "inspect")]
#[cfg_attr(docsrs, doc(cfg(feature = "inspect")))]
pub mod inspect {
    pub use docent_inspect::*;
}

/// Nodes of the tree: their data, status, children and permissions, transactions on several nodes, and kept
/// nodes.
///
/// Guides: [security](https://github.com/docent-rs/docent/blob/main/docs/guide/security.md), [the failure
/// model](https://github.com/docent-rs/docent/blob/main/docs/guide/failure-model.md).
pub mod node {
    #[doc(no_inline)]
    pub use docent_core::recipe::{KeptNode, KeptNodeBuilder, KeptStatus};
    pub use docent_core::{
        Acl, Children, CreateMode, Created, CreatedOrSet, DeleteAllError, Node, NodeAcl, Permissions, Stat,
        Transaction, TransactionResult,
    };
}

/// Nodes, children and trees cached in memory, and streams of watched nodes.
///
/// Guide: [how it works](https://github.com/docent-rs/docent/blob/main/docs/guide/how-it-works.md).
pub mod cache {
    pub use docent_core::{
        ChildrenCache, ChildrenEvent, ChildrenEvents, ChildrenSnapshot, NodeCache, NodeChanges, TreeCache,
        TreeCacheBuilder, TreeEvent, TreeEvents, TreeSnapshot, WatchStream,
    };
}

/// Tickets, holds, claims and kept nodes, for authors of custom recipes.
///
/// Guide: [write a recipe](https://github.com/docent-rs/docent/blob/main/docs/guide/write-a-recipe.md).
pub mod recipe {
    pub use docent_core::recipe::*;
    #[doc(no_inline)]
    pub use docent_core::{Participant, Role};
}

/// Clocks for leases, the check of the machine's clock, and durations in the format of settings.
///
/// Guide: [the failure model](https://github.com/docent-rs/docent/blob/main/docs/guide/failure-model.md).
pub mod time {
    pub use docent_core::{BootClock, Clock, ClockCheck, Timestamp, TokioClock, parse_duration};
}

/// Transports to the servers: TCP, TLS, or a custom one.
///
/// Guide: [security](https://github.com/docent-rs/docent/blob/main/docs/guide/security.md).
pub mod transport {
    #[cfg(feature = "tls")]
    #[cfg_attr(docsrs, doc(cfg(feature = "tls")))]
    pub use docent_core::Tls;
    pub use docent_core::{Dialled, Io, ServerAddress, TcpTransport, Transport};
}

/// The embedded server, for development and tests.
///
/// The server is a single node in memory; use a ZooKeeper ensemble in production. Guide: [getting
/// started](https://github.com/docent-rs/docent/blob/main/docs/guide/start.md).
#[cfg(feature = "server")]
pub mod server {
    pub use docent_server::*;
}

/// Faults for the tests of services: broken connections, slow servers, paused time, a real ZooKeeper, and
/// waits with a time limit.
///
/// Use it as one of the `dev-dependencies`. Guide: [testing your
/// service](https://github.com/docent-rs/docent/blob/main/docs/guide/testing.md).
#[cfg(feature = "testkit")]
pub mod testkit {
    pub use docent_testkit::*;
}

/// The guides, whose code is compiled with the documentation tests.
#[cfg(doctest)]
mod guides {
    #[doc = include_str!("../../../docs/guide/balancing.md")]
    mod balancing {}
    #[doc = include_str!("../../../docs/guide/barriers.md")]
    mod barriers {}
    #[doc = include_str!("../../../docs/guide/config.md")]
    mod config {}
    #[doc = include_str!("../../../docs/guide/cookbook.md")]
    mod cookbook {}
    #[doc = include_str!("../../../docs/guide/discovery.md")]
    mod discovery {}
    #[doc = include_str!("../../../docs/guide/election.md")]
    mod election {}
    #[doc = include_str!("../../../docs/guide/failure-model.md")]
    mod failure_model {}
    #[doc = include_str!("../../../docs/guide/fencing.md")]
    mod fencing {}
    #[doc = include_str!("../../../docs/guide/from-curator.md")]
    mod from_curator {}
    #[doc = include_str!("../../../docs/guide/guarantees.md")]
    mod guarantees {}
    #[doc = include_str!("../../../docs/guide/how-it-works.md")]
    mod how_it_works {}
    #[doc = include_str!("../../../docs/guide/kubernetes.md")]
    mod kubernetes {}
    #[doc = include_str!("../../../docs/guide/locks.md")]
    mod locks {}
    #[doc = include_str!("../../../docs/guide/membership.md")]
    mod membership {}
    #[doc = include_str!("../../../docs/guide/multi-lock.md")]
    mod multi_lock {}
    #[doc = include_str!("../../../docs/guide/mutex.md")]
    mod mutex {}
    #[doc = include_str!("../../../docs/guide/observability.md")]
    mod observability {}
    #[doc = include_str!("../../../docs/guide/partitioner.md")]
    mod partitioner {}
    #[doc = include_str!("../../../docs/guide/production.md")]
    mod production {}
    #[doc = include_str!("../../../docs/guide/queue.md")]
    mod queue {}
    #[doc = include_str!("../../../docs/guide/read-write-lock.md")]
    mod read_write_lock {}
    #[doc = include_str!("../../../docs/guide/retries.md")]
    mod retries {}
    #[doc = include_str!("../../../docs/guide/security.md")]
    mod security {}
    #[doc = include_str!("../../../docs/guide/semaphore.md")]
    mod semaphore {}
    #[doc = include_str!("../../../docs/guide/service.md")]
    mod service {}
    #[doc = include_str!("../../../docs/guide/settings.md")]
    mod settings {}
    #[doc = include_str!("../../../docs/guide/shared-values.md")]
    mod shared_values {}
    #[doc = include_str!("../../../docs/guide/start.md")]
    mod start {}
    #[doc = include_str!("../../../docs/guide/testing.md")]
    mod testing {}
    #[doc = include_str!("../../../docs/guide/timed-lease.md")]
    mod timed_lease {}
    #[doc = include_str!("../../../docs/guide/timeouts.md")]
    mod timeouts {}
    #[doc = include_str!("../../../docs/guide/which-recipe.md")]
    mod which_recipe {}
    #[doc = include_str!("../../../docs/guide/write-a-recipe.md")]
    mod write_a_recipe {}
}
