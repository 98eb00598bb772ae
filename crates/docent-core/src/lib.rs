#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]

#[macro_use]
mod macros;

mod acl;
mod acl_policy;
mod aftermath;
mod auth;
mod bell;
mod cache;
mod cell;
mod claim;
mod cleanup;
mod client;
mod clock;
mod config;
mod connect_string;
mod core;
mod deadline;
mod epoch;
mod error;
mod exact;
mod fence;
mod health;
mod held;
mod keeper;
mod kept;
mod lease;
mod lost;
mod namespace;
mod node;
mod path;
#[cfg(docent_planted)]
#[doc(hidden)]
pub mod planted;
mod retry;
mod seldom;
mod session;
mod spawn;
mod state;
mod supervisor;
mod telemetry;
mod ticket;
mod timing;
mod watching;

pub use acl::{Acl, Permissions};
pub use cache::{ChildrenCache, ChildrenEvent, ChildrenEvents, ChildrenSnapshot, NodeCache, NodeChanges};
pub use client::{Client, ClientBuilder, ClockCheck, Transaction, TransactionResult};
pub use clock::{BootClock, Clock, Timestamp, TokioClock};
pub use config::{ParentKind, RollbackPolicy};
pub use connect_string::ServerAddress;
pub use error::{Error, ErrorKind};
pub use fence::{Fence, ParseFenceError};
pub use health::Health;
pub use lost::{Lost, LostReason};
pub use node::{Children, CreateMode, Created, Node, NodeAcl, Stat};
pub use retry::RetryPolicy;
/// Passwords that are not printed and are wiped when dropped; `&str` and `String` become one by `into()`.
pub use secrecy::SecretString;
#[cfg(feature = "tls")]
pub use session::tls::Tls;
pub use session::transport::{Dialled, Io, TcpTransport, Transport};
#[cfg(feature = "zookeeper-client")]
pub use session::zookeeper_client;
pub use state::{Connection, ConnectionState, StateWatcher};
pub use ticket::{Participant, Role};
pub use watching::WatchStream;

/// What recipes are made of: tickets in lines and the holds they become, claims, kept nodes, cells. For those who write recipes of
/// their own.
pub mod recipe {
    pub use crate::cell::{Cell, Race, count};
    pub use crate::claim::{Claim, Claimed, Wanted};
    pub use crate::client::in_time;
    pub use crate::deadline::after;
    pub use crate::kept::{KeptNode, KeptStatus};
    pub use crate::path::NodePath;
    pub use crate::spawn::spawn;
    pub use crate::ticket::{Hold, HoldSet, Line, LineKey, Ticket, WaitError};
}
