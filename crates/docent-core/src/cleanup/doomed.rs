use super::claim::delete_claim;
use super::own::delete_node;
use super::{ClaimNode, Left};
use crate::client::core::Core;
use crate::client::generation::SessionGeneration;
use crate::operation::exact::ExactWrite;
use crate::session::Pending;
use std::sync::Arc;

/// Node of ours that cleanup deletes.
#[derive(Debug, Clone)]
pub(super) enum Doomed {
    /// Node whose name is ours alone, so that it can be deleted by its name in any session.
    Own { generation: Arc<SessionGeneration>, path: String },
    /// Node whose name others may use once it is gone: only its own session may delete it (decision 8).
    Claim(Arc<ClaimNode>),
}

impl Doomed {
    pub(super) fn generation(&self) -> &Arc<SessionGeneration> {
        match self {
            Self::Own { generation, .. } => generation,
            Self::Claim(node) => &node.generation,
        }
    }

    /// False when another handle sees to the node's end already.
    pub(super) fn is_still_to_go(&self) -> bool {
        match self {
            // Deleting it twice does no harm.
            Self::Own { .. } => true,
            Self::Claim(node) => node.leave(),
        }
    }
}

/// Delete that may have been submitted.
#[derive(Debug)]
pub(super) enum Delete {
    /// Not yet: a look at the node comes first.
    NotYet,
    /// Of a node whose name is ours alone.
    Sent(Pending),
    Exact(ExactWrite),
}

/// Deletes `node`, whose delete may be under way.
pub(super) async fn delete_doomed(core: &Core, node: Doomed, delete: Delete) -> Left {
    match (node, delete) {
        (Doomed::Own { generation, path }, Delete::Sent(reply)) => {
            delete_node(core, generation, path, Some(reply)).await
        }
        (Doomed::Own { generation, path }, _) => delete_node(core, generation, path, None).await,
        (Doomed::Claim(node), Delete::Exact(write)) => delete_claim(core, &node, Some(write)).await,
        (Doomed::Claim(node), _) => delete_claim(core, &node, None).await,
    }
}
