use super::{NodeText, Since, Writer, session};
use serde::Serialize;

/// Members of a group.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Membership {
    /// Members in the order of their nodes' names.
    pub members: Vec<Member>,
}

/// A member of a group, of a double barrier or of a partition.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Member {
    /// Name of the node.
    pub name: String,
    /// Id: the name, or the part of the name that is the id.
    pub id: String,
    /// Data of the node.
    pub data: Option<NodeText>,
    /// Time at which the member joined.
    #[serde(flatten)]
    pub since: Option<Since>,
    /// Session that owns the node; serialized as text such as `"0x10000a3f"`.
    #[serde(serialize_with = "session::text")]
    pub session: Option<i64>,
    /// Library that wrote the node.
    pub writer: Writer,
}
