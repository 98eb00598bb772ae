#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]

#[macro_use]
mod macros;

mod cache;
mod claim;
mod cleanup;
mod client;
mod error;
mod guard;
mod kept;
mod line;
mod node;
mod operation;
#[cfg(docent_planted)]
#[doc(hidden)]
pub mod planted;
mod session;
mod task;
mod telemetry;
mod time;
mod versioned;
mod watch;

pub use cache::{ChildrenCache, ChildrenEvent, ChildrenEvents, ChildrenSnapshot, NodeCache, NodeChanges};
pub use client::{
    Client, ClientBuilder, ClockCheck, ConnectionState, ConnectionStatus, Health, ParentKind, RollbackPolicy,
    StateWatcher,
};
pub use error::{Error, ErrorKind};
pub use guard::{Fence, Lost, LostReason, ParseFenceError};
pub use line::{Participant, Role};
pub use node::{Acl, Children, CreateMode, Created, Node, NodeAcl, Permissions, Stat};
pub use operation::{Transaction, TransactionResult};
/// Passwords that are not printed and are wiped when dropped; `&str` and `String` become one by `into()`.
pub use secrecy::SecretString;
pub use session::connect_string::ServerAddress;
#[cfg(feature = "tls")]
pub use session::link::tls::Tls;
pub use session::link::transport::{Dialled, Io, TcpTransport, Transport};
#[cfg(feature = "zookeeper-client")]
pub use session::zookeeper_client;
pub use time::{BootClock, Clock, RetryPolicy, Timestamp, TokioClock};
pub use watch::WatchStream;

/// Building blocks for recipes of your own: tickets in lines and the holds they become, claims, kept nodes,
/// cells.
pub mod recipe {
    pub use crate::claim::{Claim, ClaimRequest, ClaimResult};
    pub use crate::client::spawn;
    pub use crate::kept::{KeptNode, KeptStatus};
    pub use crate::line::{Hold, HoldSet, Line, LineKey, Ticket, WaitError};
    pub use crate::node::NodePath;
    pub use crate::operation::in_time;
    pub use crate::time::after;
    pub use crate::versioned::{CasLoop, VersionedNode};

    /// Formats of Curator that are no JSON.
    pub mod curator {
        pub use crate::versioned::decode_count;
    }
}
