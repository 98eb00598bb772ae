use serde::Serialize;

/// Nodes that were left out because a limit was reached. All zero when nothing was.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize)]
#[non_exhaustive]
pub struct LeftOut {
    /// Nodes that were not read because as many were as the limit allows.
    pub nodes: usize,
    /// Folders whose children were not looked at because they are too deep.
    pub deep: usize,
    /// Nodes whose data was not read because as many bytes were as the limit allows.
    pub data: usize,
}

impl LeftOut {
    /// True when nothing was left out.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// A node that may not be read: its permissions do not allow it to this client.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
#[non_exhaustive]
pub struct Refusal {
    /// Path of the node.
    pub path: String,
}
