use crate::client::core::Core;
use crate::client::generation::SessionGeneration;
use crate::node::namespace::Namespace;
use crate::operation::{PARENT_ROUNDS, create_parents_in};
use crate::session::{Cause, Lane, Outcome};
use bytes::Bytes;
use docent_proto::{Code, Create, CreateMode, MultiOp, Request};
use std::time::Duration;
use tokio::sync::OnceCell;
use uuid::Uuid;

/// Folder of witnesses, below the client's namespace, outside of any recipe's layout.
const FOLDER: &str = "/_docent/markers";

/// Pause between attempts when the client is too busy.
const PAUSE: Duration = Duration::from_secs(1);

/// Ephemeral node of a session that keeps nodes. It is there as long as the session is, and its name is that
/// session's alone (decision 7).
///
/// A later session of the client replaces a node of this one in a multi that checks the witness. Without that
/// check, where the session ends between the look and the write, a node that somebody else made at the same
/// path in between would be deleted: it has the version of the node that was looked at.
#[derive(Debug)]
pub(crate) struct Witness {
    name: Uuid,
    made: OnceCell<()>,
}

impl Witness {
    pub(crate) fn new() -> Self {
        Self { name: Uuid::new_v4(), made: OnceCell::new() }
    }

    pub(crate) fn path(&self, namespace: &Namespace) -> String {
        format!("{}/{}", namespace.full("keep", FOLDER).expect("the folder's path is valid"), self.name)
    }
}

/// Makes the witness of a session unless it is there. Never resolves.
pub(super) async fn bear(core: &Core, generation: &SessionGeneration) {
    generation.witness.made.get_or_init(|| make(core, generation)).await;
    std::future::pending::<()>().await;
}

/// Creates the witness. Where the servers refuse it the session has none: its nodes are then not replaced by
/// later sessions, but waited for.
async fn make(core: &Core, generation: &SessionGeneration) {
    let path = generation.witness.path(&core.namespace);
    let mut missing_parents = 0;
    let mut parents = Vec::new();
    loop {
        let create = Create::new(path.clone(), Bytes::new(), core.acl(&path), CreateMode::Ephemeral, 0);
        let outcome = generation.session.submit(Request::Create(create), Lane::Call).await;
        drop(std::mem::take(&mut parents));
        match outcome {
            Outcome::Reply(reply) => match reply.result {
                // The name is ours alone: the create can be repeated.
                Ok(_) | Err(Code::NODE_EXISTS | Code::SESSION_EXPIRED) => return,
                Err(Code::NO_NODE) if missing_parents < PARENT_ROUNDS => {
                    missing_parents += 1;
                    parents = create_parents_in(core, generation, &path, core.config.parents);
                }
                Err(Code::THROTTLED) => tokio::time::sleep(PAUSE).await,
                Err(code) => {
                    tracing::debug!(%path, %code, "a session that keeps nodes has no witness");
                    return;
                }
            },
            Outcome::NotSent(Cause::Ended(_)) | Outcome::Unknown(Cause::Ended(_)) => return,
            Outcome::NotSent(Cause::LinkLost) | Outcome::Unknown(Cause::LinkLost) => {}
            Outcome::NotSent(_) | Outcome::Unknown(_) => tokio::time::sleep(PAUSE).await,
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
