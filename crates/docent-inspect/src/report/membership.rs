use super::{NodeText, Since, Writer, session};
use serde::Serialize;

/// Members of a group.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Membership {
    /// The members, in the order of their nodes' names.
    pub members: Vec<Member>,
}

/// One member of a group, of a double barrier or of those who share a set of items.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Member {
    /// Name of the node.
    pub name: String,
    /// Its id: the name, or the part of it that is the id.
    pub id: String,
    /// Data of the node.
    pub data: Option<NodeText>,
    /// Time at which it came.
    #[serde(flatten)]
    pub since: Option<Since>,
    /// The session that owns the node; serialized as text such as `"0x10000a3f"`.
    #[serde(serialize_with = "session::text")]
    pub session: Option<i64>,
    /// Library that wrote it.
    pub writer: Writer,
}
