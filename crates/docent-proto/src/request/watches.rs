/// Kind of the watches that a [`Request::RemoveWatches`](super::Request::RemoveWatches) removes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum WatchKind {
    /// Watches on children.
    Children = 1,
    /// Watches on data and existence.
    Data = 2,
    /// All watches.
    Any = 3,
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
