#![cfg_attr(any(not(doctest), feature = "server"), doc = include_str!("front.md"))]
#![cfg_attr(docsrs, feature(doc_cfg))]

#[doc(no_inline)]
pub use client::{Client, ConnectionState, Error, ErrorKind, Options};
#[doc(no_inline)]
pub use config::{Config, ConfigTree, Counter, LayeredConfig, SharedValue, Subscription};
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
/// Guides: [a service's life](crate::guide::service),
/// [errors and retries](crate::guide::errors),
/// [security](crate::guide::security).
pub mod client {
    pub use docent_core::{
        Client, ClientBuilder, ClientIdentity, ConnectionState, ConnectionStatus, Error, ErrorKind, Gssapi,
        Health, Options, ParentKind, ProvedIdentity, RetryPolicy, RollbackPolicy, Sasl, SecretString,
        ShutdownNode, ShutdownReport, StateWatcher,
    };
}

/// Locks: mutexes, read/write locks, semaphores, several locks at a time, and barriers.
///
/// Guides: [locks](crate::guide::locks), [mutex](crate::guide::mutex), [read/write
/// lock](crate::guide::read_write_lock), [semaphore](crate::guide::semaphore), [several
/// locks](crate::guide::multi_lock), [barriers](crate::guide::barriers),
/// [partitioner](crate::guide::partitioner), [timed lease](crate::guide::timed_lease).
pub mod locks {
    pub use docent_core::{Participant, Role};
    pub use docent_locks::*;
}

/// Leader election, with work that is bound to the leadership.
///
/// Guide: [election](crate::guide::election).
pub mod election {
    #[doc(no_inline)]
    pub use docent_core::{Participant, Role};
    pub use docent_election::*;
}

/// What the guards of locks, elections and queues have in common: whether they are still held, their fences,
/// and the reasons for a loss.
///
/// Guides: [guarantees](crate::guide::guarantees), [the failure
/// model](crate::guide::failure_model), [fencing a
/// database](crate::guide::fencing).
pub mod guard {
    pub use docent_core::{Fence, Guard, Held, Lost, LostReason, ParseFenceError, Released};
}

/// Queues: one with acknowledgements and dead letters, and the simple queue of ZooKeeper's documentation.
///
/// Guide: [queue](crate::guide::queue).
pub mod queue {
    pub use docent_queue::*;
}

/// Service discovery: a registry, live views of services, and membership of groups.
///
/// Guides: [discovery](crate::guide::discovery),
/// [membership](crate::guide::membership).
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
/// Guides: [configuration](crate::guide::config), [shared values](crate::guide::shared_values).
pub mod config {
    pub use docent_config::*;
}

/// The current state of recipes below any path, whichever client created them: holders, waiters, leaders,
/// queues and services.
///
/// Guide: [observability](crate::guide::observability).
#[cfg(feature = "inspect")]
#[cfg_attr(docsrs, doc(cfg(feature = "inspect")))]
pub mod inspect {
    pub use docent_inspect::*;
}

/// Nodes of the tree: their data, status, children and permissions, transactions on several nodes, and kept
/// nodes.
///
/// Guides: [security](crate::guide::security), [the failure
/// model](crate::guide::failure_model).
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
/// Guide: [how it works](crate::guide::how_it_works).
pub mod cache {
    pub use docent_core::{
        ChildrenCache, ChildrenEvent, ChildrenEvents, ChildrenSnapshot, NodeCache, NodeChanges, TreeCache,
        TreeCacheBuilder, TreeEvent, TreeEvents, TreeSnapshot, WatchStream,
    };
}

/// Tickets, holds, claims and kept nodes, for authors of custom recipes.
///
/// Guide: [write a recipe](crate::guide::write_a_recipe).
pub mod recipe {
    pub use docent_core::recipe::*;
    #[doc(no_inline)]
    pub use docent_core::{Participant, Role};
}

/// Clocks for leases, the check of the machine's clock, and durations in the format of settings.
///
/// Guide: [the failure model](crate::guide::failure_model).
pub mod time {
    pub use docent_core::{BootClock, Clock, ClockCheck, Timestamp, TokioClock, parse_duration};
}

/// Transports to the servers: TCP, TLS, or a custom one.
///
/// Guide: [security](crate::guide::security).
pub mod transport {
    #[cfg(feature = "tls")]
    #[cfg_attr(docsrs, doc(cfg(feature = "tls")))]
    pub use docent_core::Tls;
    pub use docent_core::{Dialled, Io, ServerAddress, TcpTransport, Transport};
}

/// The embedded server, for development and tests.
///
/// The server is a single node in memory; use a ZooKeeper ensemble in production. Guide: [getting
/// started](crate::guide::start).
#[cfg(feature = "server")]
pub mod server {
    pub use docent_server::*;
}

/// Faults for the tests of services: broken connections, slow servers, paused time, a real ZooKeeper, and
/// waits with a time limit.
///
/// Use it as one of the `dev-dependencies`. Guide: [testing your
/// service](crate::guide::testing).
#[cfg(feature = "testkit")]
pub mod testkit {
    pub use docent_testkit::*;
}

// The programs of the guides need these features, which a test of the package with default features lacks.
/// The guides: programs to start from, what each recipe guarantees, and how to run services that use them.
#[cfg(all(doc, any(not(doctest), all(feature = "inspect", feature = "testkit", feature = "tonic"))))]
pub mod guide;
