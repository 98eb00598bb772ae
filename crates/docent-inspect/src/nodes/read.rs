/// A read that recognition requested.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Read {
    /// Data and stat of the node at this path.
    Data(String),
    /// Names of the children of the node at this path, and its stat.
    Children(String),
}

impl Read {
    pub(crate) fn path(&self) -> &str {
        match self {
            Self::Data(path) | Self::Children(path) => path,
        }
    }
}
