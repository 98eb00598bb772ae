//! One ZooKeeper session: what the rest of core needs from it, and its two implementations.
//!
//! [`own`] is Docent's own implementation, over a [`link`]. The folder `zookeeper_client` has the second one,
//! behind a feature. [`lease`] holds what a session has proven, by the rules of [`timing`].

pub(crate) mod abilities;
pub(crate) mod connect_string;
mod context;
mod contract;
mod credentials;
pub(crate) mod ephemerals;
mod ids;
mod leader_contact;
pub(crate) mod lease;
pub(crate) mod link;
pub(crate) mod lookup;
pub(crate) mod own;
mod persistent_watch;
mod requests;
pub(crate) mod retry;
pub(crate) mod sasl;
pub(crate) mod timing;
mod watch;
mod watch_reads;
mod watch_requests;
#[cfg(feature = "zookeeper-client")]
pub mod zookeeper_client;

pub(crate) use context::SessionContext;
pub(crate) use contract::{
    Cause, Lane, LinkState, Outcome, Pending, Reply, Session, SessionEnd, SessionSettings, Withdraw,
};
pub(crate) use credentials::Credentials;
pub(crate) use ids::Ids;
pub(crate) use link::{LinkError, SessionCloser};
pub(crate) use own::WireSession;
pub(crate) use persistent_watch::{PersistentSignal, PersistentWatch};
pub(crate) use sasl::Sasl;
pub(crate) use watch::{Fired, Registration, Watch, WatchKind};
pub(crate) use watch_requests::watch_requests;
