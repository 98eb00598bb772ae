use super::{Member, NodeText, Since};
use serde::Serialize;

/// A barrier that is set.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Barrier {
    /// Identity of the client that set the barrier.
    pub identity: Option<NodeText>,
    /// Time at which the barrier was set.
    #[serde(flatten)]
    pub since: Option<Since>,
}

/// A double barrier: members that enter together and leave together.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct DoubleBarrier {
    /// True once enough members have entered: the barrier is open.
    pub is_ready: bool,
    /// Members that wait or are inside, in the order of their nodes' names.
    pub members: Vec<Member>,
}
