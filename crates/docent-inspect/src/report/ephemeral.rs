use super::{Since, session};
use serde::Serialize;

/// An ephemeral node: the servers delete it when its session ends.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Ephemeral {
    /// Path of the node.
    pub path: String,
    /// Session that owns the node; serialized as text such as `"0x10000a3f"`.
    #[serde(serialize_with = "session::of_owner")]
    pub session: i64,
    /// Time at which the node was created.
    #[serde(flatten)]
    pub since: Since,
}
