//! One ZooKeeper session: what the rest of core needs from it, and its two implementations.
//!
//! [`own`] is Docent's own implementation, over a [`link`]. The folder `zookeeper_client` has the second one,
//! behind a feature. [`lease`] holds what a session has proven, and by which rules.

pub(crate) mod abilities;
pub(crate) mod connect_string;
pub(crate) mod context;
mod contract;
mod credentials;
pub(crate) mod ephemerals;
pub(crate) mod lease;
pub(crate) mod link;
pub(crate) mod lookup;
pub(crate) mod own;
mod requests;
pub(crate) mod sasl;
mod watch;
#[cfg(feature = "zookeeper-client")]
pub mod zookeeper_client;

pub(crate) use context::{Ids, SessionContext};
pub(crate) use contract::{
    Cause, Lane, LinkState, Outcome, Pending, Reply, Session, SessionEnd, SessionSettings, Withdraw,
};
pub(crate) use credentials::Credentials;
pub(crate) use link::{LinkError, SessionCloser};
pub(crate) use own::WireSession;
pub(crate) use sasl::Sasl;
pub(crate) use watch::{
    Fired, PersistentSignal, PersistentWatch, Registration, Watch, WatchKind, watch_requests,
};
