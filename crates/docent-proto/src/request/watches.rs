use crate::DecodeError;

/// Kind of watches that a [`Request::RemoveWatches`](super::Request::RemoveWatches) removes and a
/// [`Request::CheckWatches`](super::Request::CheckWatches) checks. A persistent watch is of both kinds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum WatchKind {
    /// Watches on children.
    Children = 1,
    /// Watches on data and existence.
    Data = 2,
    /// All watches.
    Any = 3,
}

impl WatchKind {
    pub(crate) fn from_number(number: i32) -> Result<Self, DecodeError> {
        match number {
            1 => Ok(Self::Children),
            2 => Ok(Self::Data),
            3 => Ok(Self::Any),
            other => Err(DecodeError::UnknownWatch(other)),
        }
    }
}

/// Mode of a watch that stays set after it fires, created by [`Request::AddWatch`](super::Request::AddWatch).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum WatchMode {
    /// Reports each change of the node and of the set of its children.
    Persistent = 0,
    /// Reports each creation, deletion and change of data of the node and of all nodes below it, but no
    /// changes of the sets of children.
    PersistentRecursive = 1,
}

impl WatchMode {
    pub(crate) fn from_number(number: i32) -> Result<Self, DecodeError> {
        match number {
            0 => Ok(Self::Persistent),
            1 => Ok(Self::PersistentRecursive),
            other => Err(DecodeError::UnknownWatch(other)),
        }
    }
}

/// Watches that a client sets again on a new connection.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Watches {
    /// Latest transaction that the client has seen. Watches on nodes that changed later fire immediately.
    pub relative_zxid: i64,
    /// Watches on the data of nodes that existed.
    pub data: Vec<String>,
    /// Watches on the existence of nodes that did not exist.
    pub exist: Vec<String>,
    /// Watches on children.
    pub child: Vec<String>,
}

impl Watches {
    pub(crate) fn payload_len(&self) -> usize {
        [&self.data, &self.exist, &self.child].into_iter().flatten().map(String::len).sum()
    }
}
