use crate::DecodeError;

/// Kind of the watches that a [`Request::RemoveWatches`](super::Request::RemoveWatches) removes and a
/// [`Request::CheckWatches`](super::Request::CheckWatches) asks for. A watch that stays is one of both kinds.
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

/// Mode of a watch that stays when it comes true, set by [`Request::AddWatch`](super::Request::AddWatch).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum WatchMode {
    /// Tells each change of the node and of the set of its children.
    Persistent = 0,
    /// Tells each creation, deletion and change of data of the node and of all below it, but nothing of sets
    /// of children.
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

/// Watches that a client sets again on a new link.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Watches {
    /// Newest transaction the client has seen: what changed after it fires at once.
    pub relative_zxid: i64,
    /// Watches on the data of nodes that existed.
    pub data: Vec<String>,
    /// Watches on the existence of nodes that did not.
    pub exist: Vec<String>,
    /// Watches on children.
    pub child: Vec<String>,
}

impl Watches {
    pub(crate) fn payload_len(&self) -> usize {
        [&self.data, &self.exist, &self.child].into_iter().flatten().map(String::len).sum()
    }
}
