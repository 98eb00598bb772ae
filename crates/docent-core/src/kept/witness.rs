use crate::cleanup::{Near, NoOwnNode, create_own_node};
use crate::guard::SessionGeneration;
use crate::node::OWN;
use crate::node::namespace::Namespace;
use crate::operation::Shared;
use crate::session::Cause;
use crate::session::context::PAUSE;
use crate::time::deadline;
use docent_proto::MultiOp;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::OnceCell;

/// Ephemeral node of a session that keeps nodes. It exists as long as the session, and no other session uses
/// its name (decision 7).
///
/// A later session of the client replaces a node of this session in a multi that checks the witness. The
/// check is necessary because the session may end between the read and the write. Another client could then
/// create a node at the same path with the version that was read, and the write would delete that node.
#[derive(Debug, Default)]
pub(crate) struct Witness {
    /// Full path; the inner `None` means that the servers refused the witness.
    path: OnceCell<Option<String>>,
}

impl Witness {
    /// The full path; for a session without a witness, a path at which a node never exists.
    pub(crate) fn path(&self, namespace: &Namespace) -> String {
        let created = self.path.get().cloned().flatten();
        created.unwrap_or_else(|| format!("{}/{OWN}/none", namespace.prefix()))
    }
}

/// Creates the witness of a session unless it exists. Never resolves.
pub(super) async fn create_witness(shared: &Shared, generation: &Arc<SessionGeneration>, near: &str) {
    generation.witness.path.get_or_init(|| create(shared, generation, near)).await;
    std::future::pending::<()>().await;
}

/// Creates the witness, and returns its path. If the servers refuse it, the session has none: later sessions
/// do not replace its nodes, but wait until they are deleted.
async fn create(shared: &Shared, generation: &Arc<SessionGeneration>, near: &str) -> Option<String> {
    loop {
        let node =
            create_own_node(shared, generation, Near::Path(near), &mut None, deadline(Duration::MAX)).await;
        match node {
            Ok(path) => return Some(path),
            Err(NoOwnNode::Cause(Cause::Ended(_))) => return None,
            Err(NoOwnNode::Cause(Cause::LinkLost)) => {}
            Err(NoOwnNode::Cause(_)) => tokio::time::sleep(PAUSE).await,
            Err(NoOwnNode::Refused(error)) => {
                // Event: The servers refuse the session's witness, an ephemeral node that shows that the
                // session lives. Later sessions of this client wait for this session's nodes to expire
                // instead of replacing them.
                // Action: Allow the client to create nodes in `_docent` below its namespace if restarts must
                // be fast.
                tracing::debug!(target: "docent::node", client = %shared.label, error = %shared.namespace.located(&error), "cannot create the session's witness node; later sessions will wait for this session's nodes to expire");
                return None;
            }
        }
    }
}

/// Prepends a check of `witness` to `ops`, so that they are applied only while the session of that witness is
/// alive.
pub(super) fn while_session_lives(
    witness: String,
    ops: impl IntoIterator<Item = MultiOp>,
) -> impl Iterator<Item = MultiOp> {
    let check = MultiOp::Check { path: witness, version: -1 };
    std::iter::once(check).chain(ops)
}
