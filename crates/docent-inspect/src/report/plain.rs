use super::{Since, session};
use serde::Serialize;

/// A node that no recipe was recognised in: a folder, or data of any other use.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Plain {
    /// Length of its data in bytes.
    pub size: usize,
    /// Number of its children.
    pub children: usize,
    /// Number of changes of its data.
    pub version: i32,
    /// Time of the last change of its data.
    pub modified: Since,
    /// The session that owns the node, when it is ephemeral; serialized as text such as `"0x10000a3f"`.
    #[serde(serialize_with = "session::text")]
    pub session: Option<i64>,
}
