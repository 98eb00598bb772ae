use crate::guard::SessionGeneration;
use crate::operation::Shared;
use crate::session::Lane;
use crate::session::ask::{Stop, ask};
use crate::setup::{PARENT_ROUNDS, create_parents_in};
use bytes::Bytes;
use docent_proto::{Code, Create, CreateMode, MultiOp, Request};

/// Makes the witness of a session unless it is there. Never resolves.
pub(super) async fn create_witness(shared: &Shared, generation: &SessionGeneration) {
    generation.witness.made.get_or_init(|| make(shared, generation)).await;
    std::future::pending::<()>().await;
}

/// Creates the witness. Where the servers refuse it the session has none: its nodes are then not replaced by
/// later sessions, but waited for.
async fn make(shared: &Shared, generation: &SessionGeneration) {
    let path = generation.witness.path(&shared.namespace);
    let create = Create::new(path.clone(), Bytes::new(), shared.acl(&path), CreateMode::Ephemeral, 0);
    let mut missing_parents = 0;
    let mut parents = Vec::new();
    loop {
        // The name is ours alone: the create can be repeated.
        let asked = ask(generation, Lane::Call, || Request::Create(create.clone())).await;
        drop(std::mem::take(&mut parents));
        match asked.map(|reply| reply.result) {
            Ok(Ok(_) | Err(Code::NODE_EXISTS)) | Err(Stop::Ended(_)) => return,
            Ok(Err(Code::NO_NODE)) if missing_parents < PARENT_ROUNDS => {
                missing_parents += 1;
                parents = create_parents_in(shared, generation, &path, shared.config.parents);
            }
            refused => {
                tracing::debug!(%path, ?refused, "a session that keeps nodes has no witness");
                return;
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
