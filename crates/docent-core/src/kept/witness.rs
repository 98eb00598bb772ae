use crate::cleanup::{Near, NoOwnNode, create_own_node};
use crate::guard::SessionGeneration;
use crate::node::OWN;
use crate::node::namespace::Namespace;
use crate::operation::Shared;
use crate::session::Cause;
use crate::session::ask::PAUSE;
use crate::time::deadline;
use docent_proto::MultiOp;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::OnceCell;

/// Ephemeral node of a session that keeps nodes. It exists as long as the session does, and its name is that
/// session's alone (decision 7).
///
/// A later session of the client replaces a node of this one in a multi that checks the witness. Without that
/// check, where the session ends between the look and the write, a node that another client created at the
/// same path in between would be deleted: it has the version of the node that was looked at.
#[derive(Debug, Default)]
pub(crate) struct Witness {
    /// Full path; `None` inside if the servers refused it.
    path: OnceCell<Option<String>>,
}

impl Witness {
    /// Runs `create`, which returns the path, unless the witness exists or was refused.
    pub(crate) async fn get_or_create<F: Future<Output = Option<String>>>(&self, create: impl FnOnce() -> F) {
        self.path.get_or_init(create).await;
    }

    /// The full path; of a session without a witness one at which there never is a node.
    pub(crate) fn path(&self, namespace: &Namespace) -> String {
        let created = self.path.get().cloned().flatten();
        created.unwrap_or_else(|| format!("{}/{OWN}/none", namespace.prefix()))
    }
}

/// Creates the witness of a session unless it exists. Never resolves.
pub(super) async fn create_witness(shared: &Shared, generation: &Arc<SessionGeneration>, near: &str) {
    generation.witness.get_or_create(|| create(shared, generation, near)).await;
    std::future::pending::<()>().await;
}

/// Creates the witness, and returns its path. If the servers refuse it, the session has none: later sessions
/// do not replace its nodes, but wait until they are gone.
async fn create(shared: &Shared, generation: &Arc<SessionGeneration>, near: &str) -> Option<String> {
    loop {
        let node = create_own_node(shared, generation, Near::Path(near), None, deadline(Duration::MAX)).await;
        match node {
            Ok(node) => return Some(node.path),
            Err(NoOwnNode::Cause(Cause::Ended(_))) => return None,
            Err(NoOwnNode::Cause(Cause::LinkLost)) => {}
            Err(NoOwnNode::Cause(_)) => tokio::time::sleep(PAUSE).await,
            Err(NoOwnNode::Refused(error)) => {
                tracing::debug!(%error, "a session that keeps nodes has no witness");
                return None;
            }
        }
    }
}

/// Puts a check of `witness` before `ops`, so that they are applied only while the session of that witness
/// lives.
pub(super) fn while_it_lives(
    witness: String,
    ops: impl IntoIterator<Item = MultiOp>,
) -> impl Iterator<Item = MultiOp> {
    let check = MultiOp::Check { path: witness, version: -1 };
    std::iter::once(check).chain(ops)
}
