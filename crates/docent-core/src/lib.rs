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
mod hold;
mod kept;
mod line;
mod node;
mod operation;
#[cfg(docent_planted)]
#[doc(hidden)]
pub mod planted;
mod session;
mod shared_map;
mod task;
mod telemetry;
mod time;
mod versioned;
mod watch;

pub use cache::{
    ChildrenCache, ChildrenEvent, ChildrenEvents, ChildrenSnapshot, NodeCache, NodeChanges, TreeCache,
    TreeCacheBuilder, TreeEvent, TreeEvents, TreeSnapshot,
};
pub use client::{
    Client, ClientBuilder, ClockCheck, ConnectionState, ConnectionStatus, DeleteAllError, Health, Options,
    ParentKind, ProvedIdentity, RollbackPolicy, ShutdownNode, ShutdownReport, StateWatcher, Transaction,
    TransactionResult,
};
pub use error::{Error, ErrorKind};
pub use guard::{Fence, Lost, LostReason, ParseFenceError, Released};
pub use hold::{Guard, Held, Role};
pub use line::Participant;
pub use node::{Acl, Children, ClientIdentity, CreateMode, Created, Node, NodeAcl, Permissions, Stat};
/// Text for passwords that is not printed and is wiped when dropped; `&str` and `String` convert with
/// `into()`.
pub use secrecy::SecretString;
pub use session::connect_string::ServerAddress;
#[cfg(feature = "tls")]
pub use session::link::tls::Tls;
pub use session::link::transport::{Dialled, Io, TcpTransport, Transport};
pub use session::sasl::{Gssapi, Sasl};
#[cfg(feature = "zookeeper-client")]
pub use session::zookeeper_client;
pub use time::{BootClock, Clock, RetryPolicy, Timestamp, TokioClock, parse_duration};
pub use versioned::CreatedOrSet;
pub use watch::WatchStream;

/// Building blocks for custom recipes: tickets in lines and the holds they become, claims, kept nodes,
/// versioned nodes, shared caches, calls of user code.
///
/// These may change in any version: see [what 0.1
/// promises](https://github.com/docent-rs/docent/blob/main/docs/guide/stability.md).
pub mod recipe {
    pub use crate::cache::SharedNode;
    pub use crate::claim::{ClaimRequest, ClaimResult, claim_all, hand_out};
    pub use crate::client::{Hooks, RecipeKind, Stage, ensure_node, full_error, full_path, in_time, spawn};
    pub use crate::error::if_exists;
    pub use crate::hold::{Hold, HoldSet};
    pub use crate::kept::{KeptNode, KeptNodeBuilder, KeptStatus, Preparation, ReadChoice, Shown};
    pub use crate::line::{Ahead, ContenderName, Line, LineKey, OwnHolds, Ticket, TicketBatch, WaitError};
    pub use crate::node::NodePath;
    pub use crate::operation::InOperation;
    pub use crate::task::{HookPanic, call_hook};
    pub use crate::time::after;
    pub use crate::versioned::{CasLoop, VersionedNode};

    // What Docent's own recipes share besides.
    #[doc(hidden)]
    pub use crate::{
        cache::{SubtreeEvent, SubtreeEvents},
        claim::proofs_below,
        client::{
            ViewLag, children_of_all, debug_handle, get_all, is_own_session, server_time, stage_reached,
            time_of_day, transport,
        },
        line::refuse_contenders,
        node::{is_own_name, is_own_path},
        shared_map::{SharedMap, SharedMapIter},
        task::SyncStream,
        telemetry::{Metric, MetricUnit, Series},
        time::since_1970_ms,
    };

    /// Curator formats that are not JSON.
    #[doc(hidden)]
    pub mod curator {
        pub use crate::versioned::{decode_count, is_revocation};
    }
}
