use super::ReadChoice;
use crate::error::Error;
use crate::node::CreateMode;
use bytes::Bytes;
use futures_util::future::BoxFuture;
use std::fmt;
use std::sync::{Arc, Weak};
use std::time::Duration;

/// Work that must be done before a kept node is written with some data. An error that is not
/// [retryable](Error::is_retryable) refuses the data: the node is not written, and the work is repeated after
/// a pause.
pub type Preparation = dyn Fn(Bytes) -> BoxFuture<'static, Result<(), Error>> + Send + Sync;

/// Wanted state of a kept node.
#[derive(Clone)]
pub(crate) struct Desired {
    /// Data to keep; `None` to keep the node absent.
    pub(crate) data: Option<Bytes>,
    /// Mode of the created node. The node's task gets it without the sequential part.
    pub(crate) mode: CreateMode,
    /// True to re-create the node after a deletion.
    pub(crate) recreate: bool,
    /// Number of this request among all requests for the node.
    pub(crate) number: u64,
    /// Label of the node's purpose, for reports.
    pub(crate) kind: &'static str,
    /// Whether the node exists only for one step of a recipe.
    pub(crate) brief: bool,
    pub(crate) final_data: Option<FinalData>,
    /// Reads which data another client wants the node to show; without it, the wanted data is restored.
    pub(crate) read_choice: Option<ReadChoice>,
    /// Work before the first write of each data; owned by the user of the handle.
    pub(crate) preparation: Option<Weak<Preparation>>,
    /// Full path of the outermost parent that is never created.
    pub(crate) base: Option<Arc<str>>,
}

/// Final data of a kept node, written before the client's shutdown removes the node, and shown while another
/// client wants that.
#[derive(Clone)]
pub(crate) struct FinalData {
    pub(crate) data: Bytes,
    /// Time in which readers can act on the data before the node is removed. If it is zero, the data is not
    /// written for that.
    pub(crate) period: Duration,
}

impl Desired {
    /// Creates the wanted state of an empty ephemeral node.
    pub(crate) fn new() -> Self {
        Self {
            data: Some(Bytes::new()),
            mode: CreateMode::Ephemeral,
            recreate: true,
            number: 1,
            kind: "kept_node",
            brief: false,
            final_data: None,
            read_choice: None,
            preparation: None,
            base: None,
        }
    }
}

/// Known state of a kept node.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum KeptStatus {
    /// The task is working on the node.
    Pending,
    /// The node exists with the wanted data, according to the servers' last events.
    Present {
        /// Generation of the session that owns the node.
        generation: u64,
    },
    /// The path is occupied by a node of another client, or of an older session of this client that may just
    /// have ended. The kept node is created when that node disappears.
    Occupied {
        /// Session that owns the other node.
        session_id: i64,
    },
    /// The node cannot be created or written. The client retries.
    Failing(Error),
    /// The node was removed.
    Removed,
}

impl fmt::Debug for FinalData {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FinalData").field("period", &self.period).finish_non_exhaustive()
    }
}

impl fmt::Display for KeptStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pending => f.write_str("pending"),
            Self::Present { generation } => write!(f, "present in session {generation}"),
            Self::Occupied { session_id } => write!(f, "occupied by the session {session_id:#x}"),
            Self::Failing(error) => write!(f, "failing: {error}"),
            Self::Removed => f.write_str("removed"),
        }
    }
}

impl fmt::Debug for Desired {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Desired").field("number", &self.number).finish_non_exhaustive()
    }
}
