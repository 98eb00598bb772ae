use bytes::Bytes;
use docent_core::Stat;
use docent_core::recipe::is_own_name;

/// Result of a read.
#[derive(Debug, Clone)]
pub(crate) enum Known<T> {
    Present(T),
    /// The node does not exist.
    Absent,
    /// Permission is missing.
    Refused,
    /// Not read because of a limit.
    LeftOut,
}

impl<T> Known<T> {
    pub(crate) fn present(&self) -> Option<&T> {
        match self {
            Self::Present(found) => Some(found),
            Self::Absent | Self::Refused | Self::LeftOut => None,
        }
    }

    pub(super) fn map<U>(&self, of: impl FnOnce(&T) -> U) -> Known<U> {
        match self {
            Self::Present(found) => Known::Present(of(found)),
            Self::Absent => Known::Absent,
            Self::Refused => Known::Refused,
            Self::LeftOut => Known::LeftOut,
        }
    }
}

/// Answer to a read.
#[derive(Debug)]
pub(crate) enum Answer {
    Data(Known<Data>),
    Folder(Known<Folder>),
}

/// Data of a node.
#[derive(Debug, Clone)]
pub(crate) struct Data {
    /// `None` if only the stat was read because of a limit.
    pub(crate) bytes: Option<Bytes>,
    pub(crate) stat: Stat,
}

/// Children of a node.
#[derive(Debug, Clone)]
pub(crate) struct Folder {
    /// Names in order.
    pub(crate) names: Vec<String>,
    /// Stat of the node itself.
    pub(crate) stat: Stat,
}

impl Folder {
    pub(crate) fn new(mut names: Vec<String>, stat: Stat) -> Self {
        // Clients keep their own nodes in any folder in which they may create nodes.
        names.retain(|name| !is_own_name(name));
        names.sort_unstable();
        Self { names, stat }
    }
}
