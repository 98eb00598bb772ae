use docent_core::Stat;
use std::fmt;
use std::ops::Deref;
use std::time::{Duration, SystemTime};

/// A value together with its origin. It dereferences to the value: `snapshot.per_second`.
#[derive(Clone)]
pub struct Snapshot<T> {
    value: T,
    origin: Origin,
    revision: Option<Revision>,
}

/// Origin of a [`Snapshot`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Origin {
    /// The servers.
    Server,
    /// The local snapshot file: provisional, until the servers answer.
    File,
    /// The builder's default, used while nothing else is known.
    Default,
}

impl<T> Snapshot<T> {
    pub(crate) fn new(value: T, revision: Revision, origin: Origin) -> Self {
        Self { value, origin, revision: Some(revision) }
    }

    pub(crate) fn default_value(value: T) -> Self {
        Self { value, origin: Origin::Default, revision: None }
    }

    /// Returns the value.
    pub fn value(&self) -> &T {
        &self.value
    }

    /// Returns the origin.
    pub fn origin(&self) -> Origin {
        self.origin
    }

    /// Returns true for a value that does not come from a server: from the local file, or the default.
    pub fn is_provisional(&self) -> bool {
        self.origin != Origin::Server
    }

    /// Returns the revision of the value, or `None` for the default.
    pub fn revision(&self) -> Option<Revision> {
        self.revision
    }

    /// Returns the time since the value was published, as far as the clocks of the servers and of this
    /// machine agree. Zero for the default.
    pub fn age(&self) -> Duration {
        let since = |revision: Revision| SystemTime::now().duration_since(revision.modified).ok();
        self.revision.and_then(since).unwrap_or_default()
    }
}

impl<T> Deref for Snapshot<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

// The value may hold secrets, so `Debug` does not print it.
impl<T> fmt::Debug for Snapshot<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Snapshot")
            .field("origin", &self.origin)
            .field("revision", &self.revision)
            .finish_non_exhaustive()
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Server => "server",
            Self::File => "file",
            Self::Default => "default",
        })
    }
}

/// Revision of a node's value: the transactions that distinguish it from all other values of the node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Revision {
    /// Transaction that created the node.
    pub czxid: i64,
    /// Transaction that wrote the value. It increases from each value to the next, even if the node is
    /// deleted and re-created.
    pub mzxid: i64,
    /// Number of values before this one since the node was created.
    pub version: i32,
    /// Time of the write by the servers' clock, in whole milliseconds.
    pub modified: SystemTime,
}

impl Revision {
    /// Returns true if a node with this stat has this value.
    pub(crate) fn is(&self, stat: &Stat) -> bool {
        (stat.czxid, stat.mzxid, stat.version) == (self.czxid, self.mzxid, self.version)
    }
}

impl From<&Stat> for Revision {
    fn from(stat: &Stat) -> Self {
        Self { czxid: stat.czxid, mzxid: stat.mzxid, version: stat.version, modified: stat.modified }
    }
}
