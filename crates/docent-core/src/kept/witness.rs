use crate::cleanup::{Near, NoOwnNode, create_own_node};
use crate::guard::SessionGeneration;
use crate::operation::Shared;
use crate::session::Cause;
use crate::session::ask::PAUSE;
use crate::time::deadline;
use docent_proto::MultiOp;
use std::time::Duration;

/// Creates the witness of a session unless it exists. Never resolves.
pub(super) async fn create_witness(shared: &Shared, generation: &SessionGeneration, near: &str) {
    generation.witness.get_or_create(|| create(shared, generation, near)).await;
    std::future::pending::<()>().await;
}

/// Creates the witness, and returns its path. If the servers refuse it, the session has none: later sessions
/// do not replace its nodes, but wait until they are gone.
async fn create(shared: &Shared, generation: &SessionGeneration, near: &str) -> Option<String> {
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
