use super::{Since, session};
use serde::Serialize;

/// A node in which no recipe was recognised: a folder, or data with another use.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Plain {
    /// Length of the data in bytes.
    pub size: usize,
    /// Number of children.
    pub children: usize,
    /// Number of changes of the data.
    pub version: i32,
    /// Time of the last change of the data.
    pub modified: Since,
    /// Session that owns the node, if it is ephemeral; serialized as text such as `"0x10000a3f"`.
    #[serde(serialize_with = "session::text")]
    pub session: Option<i64>,
}
