use serde::Serialize;

/// Numbers of nodes that were omitted because a limit was reached. All zero if nothing was omitted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize)]
#[non_exhaustive]
pub struct LeftOut {
    /// Nodes that were not read because the limit of nodes was reached.
    pub nodes: usize,
    /// Folders whose children were not read because they are too deep.
    pub deep: usize,
    /// Nodes whose data was not read because the limit of bytes was reached.
    pub data: usize,
}

impl LeftOut {
    /// Returns true if nothing was omitted.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// A node that this client's permissions do not allow it to read.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
#[non_exhaustive]
pub struct Refusal {
    /// Path of the node.
    pub path: String,
}
