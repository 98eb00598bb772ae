use super::Left;
use super::claim::delete_claim;
use super::own::delete_node;
use crate::claim::ClaimNode;
use crate::core::Core;
use crate::epoch::Epoch;
use crate::session::Pending;
use std::sync::Arc;

/// A node that must go.
#[derive(Debug, Clone)]
pub(super) enum Doomed {
    /// One whose name is ours alone, so that it can be deleted by its name in any session.
    Own { epoch: Arc<Epoch>, path: String },
    /// One whose name others may use once it is gone: only its own session may delete it.
    Claim(Arc<ClaimNode>),
}

impl Doomed {
    pub(super) fn epoch(&self) -> &Arc<Epoch> {
        match self {
            Self::Own { epoch, .. } => epoch,
            Self::Claim(node) => &node.epoch,
        }
    }

    /// False when somebody else sees to the node's end already.
    pub(super) fn is_still_to_go(&self) -> bool {
        match self {
            // Deleting it twice does no harm.
            Self::Own { .. } => true,
            Self::Claim(node) => node.leave(),
        }
    }
}

pub(super) async fn delete_doomed(core: &Core, node: Doomed, reply: Option<Pending>) -> Left {
    match node {
        Doomed::Own { epoch, path } => delete_node(core, epoch, path, reply).await,
        Doomed::Claim(node) => delete_claim(&node, reply).await,
    }
}
