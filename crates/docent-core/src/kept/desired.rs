use crate::error::Error;
use crate::node::CreateMode;
use bytes::Bytes;
use std::fmt;
use std::time::Duration;

/// Wanted state of a kept node.
#[derive(Clone)]
pub(crate) struct Desired {
    /// Data to keep; `None` to keep the node absent.
    pub(crate) data: Option<Bytes>,
    /// Mode that it is made as, besides a number.
    pub(crate) mode: CreateMode,
    /// True to make the node again when it is gone.
    pub(crate) anew: bool,
    /// Number of this wish among all of the node.
    pub(crate) number: u64,
    /// Label of what the node is for, as it is reported.
    pub(crate) kind: &'static str,
    pub(crate) farewell: Option<Farewell>,
}

/// Last words of a kept node, before the client's shutdown removes it.
#[derive(Clone)]
pub(crate) struct Farewell {
    pub(crate) data: Bytes,
    /// Time that readers get to act on it.
    pub(crate) period: Duration,
}

impl Desired {
    pub(crate) fn new(data: Bytes, mode: CreateMode) -> Self {
        Self { data: Some(data), mode, anew: true, number: 1, kind: "kept_node", farewell: None }
    }
}

/// Known state of a kept node.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum KeptStatus {
    /// The task is at work on it.
    Pending,
    /// It is there with the wanted data, as far as the servers told.
    Present {
        /// The generation of the session that owns it.
        generation: u64,
    },
    /// Somebody else's node is at the path, or one of an older session of this client that may have ended
    /// just now. It is taken over when that goes.
    Occupied {
        /// The session that owns it.
        session_id: i64,
    },
    /// It cannot be made. Tried again.
    Failing(Error),
    /// It was removed.
    Removed,
}

impl fmt::Debug for Farewell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Farewell").field("period", &self.period).finish_non_exhaustive()
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
