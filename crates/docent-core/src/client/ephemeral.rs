//! Creates of ephemeral nodes as exact writes, because a create that is applied late could bring back a node
//! that was deleted in the meantime.

use super::{Client, PARENT_ROUNDS, create_parents, refused_parent};
use crate::cleanup::{CreatedNodes, ExactWrite, Marker, Near, WriteOutcome, numbered};
use crate::error::Error;
use crate::guard::SessionGeneration;
use crate::node::{Created, Stat};
use crate::operation::{Attempts, Idempotency};
use crate::session::{Cause, Lane, SessionEnd};
use bytes::Bytes;
use docent_proto::{Code, Create, CreateMode, MultiOp, MultiResult};
use std::sync::Arc;
use tokio::time::{Instant, timeout_at};

/// The create of an ephemeral node in flight. If the value is dropped, the node is deleted as soon as the
/// outcome of the create is known.
struct PendingCreate {
    generation: Arc<SessionGeneration>,
    full: String,
    is_sequential: bool,
    /// The write; `None` once its outcome is certain.
    write: Option<ExactWrite>,
    /// Transaction that created the node, while the node's name is not known yet.
    nameless: Option<i64>,
}

impl PendingCreate {
    fn submit(generation: &Arc<SessionGeneration>, marker: Marker, create: Create) -> Self {
        let (full, mode) = (create.path.clone(), CreateMode::from_flags(create.flags));
        let write = ExactWrite::submit(marker, [MultiOp::Create(create)], Lane::Call);
        let is_sequential = mode.is_some_and(CreateMode::is_sequential);
        Self { generation: Arc::clone(generation), full, is_sequential, write: Some(write), nameless: None }
    }

    async fn outcome(&mut self, attempts: &Attempts<'_>) -> WriteOutcome {
        let Some(write) = &mut self.write else { return WriteOutcome::NotApplied(Cause::LinkLost) };
        let outcome = write.outcome(attempts.deadline).await;
        // If the outcome of a write is not certain, the drop undoes the write.
        if !matches!(outcome, WriteOutcome::Unknown(_)) {
            self.write = None;
        }
        outcome
    }
}

impl PendingCreate {
    /// Finds the name of the node that the transaction `czxid` created, because the reply with the name was
    /// lost.
    async fn name(&mut self, attempts: &Attempts<'_>, czxid: i64) -> Result<String, Error> {
        self.nameless = Some(czxid);
        let found = timeout_at(attempts.deadline, numbered(&self.generation, &self.full, czxid)).await;
        // If the node was not found, the drop searches for it again and deletes it.
        let path = found.ok().and_then(Result::ok).ok_or_else(|| attempts.unknown())?;
        self.nameless = None;
        let path = path.ok_or_else(|| attempts.unknown())?;
        self.generation.session.owns(&path);
        Ok(path)
    }
}

impl Drop for PendingCreate {
    fn drop(&mut self) {
        if let Some(czxid) = self.nameless {
            return self.generation.cleanup.undo_numbered(
                &self.generation,
                std::mem::take(&mut self.full),
                czxid,
            );
        }
        if let Some(mut write) = self.write.take()
            && !write.withdraw()
        {
            let full = std::mem::take(&mut self.full);
            let created =
                if self.is_sequential { CreatedNodes::Numbered(full) } else { CreatedNodes::At(full) };
            self.generation.cleanup.undo_exact(&self.generation, write, created);
        }
    }
}

/// Creates an ephemeral node. On `NoNode`, creates its parents and then the node again, in one round trip.
/// `request` builds the create.
pub(super) async fn create(
    client: &Client,
    path: &str,
    data: &Bytes,
    request: &(dyn Fn() -> Create + Send + Sync),
) -> Result<Created, Error> {
    let mut attempts = client.attempts("create", path, Idempotency::Once);
    let mut missing_parents = 0;
    loop {
        let generation = attempts.generation().await?;
        let create = request();
        let full = create.path.clone();
        let Some(marker) = attempts.marker(&generation, Near::Path(&full)).await? else { continue };
        let parents = if missing_parents > 0 {
            create_parents(client.shared(), &generation, &full, client.parents())
        } else {
            Vec::new()
        };
        let mut create = PendingCreate::submit(&generation, marker, create);
        let (sent, cause) = match create.outcome(&attempts).await {
            WriteOutcome::Applied(results, marker) => {
                let path = match results.and_then(|results| results.into_iter().next()) {
                    Some(MultiResult::Created { path, .. }) => path,
                    Some(_) => return Err(attempts.unknown()),
                    None if create.is_sequential => create.name(&attempts, marker.mzxid).await?,
                    None => {
                        generation.session.owns(&full);
                        full
                    }
                };
                return Ok(created(client, &generation, &path, data, &marker));
            }
            WriteOutcome::Failed(_, Code::NO_NODE) if missing_parents < PARENT_ROUNDS => {
                // On the heap, because this case is rare.
                let refused = Box::pin(refused_parent(client.shared(), "create", &full, parents)).await;
                refused.map_or(Ok(()), Err)?;
                missing_parents += 1;
                continue;
            }
            WriteOutcome::NoMarker => continue,
            WriteOutcome::Refused(Code::THROTTLED) => (false, Cause::QueueFull),
            WriteOutcome::Failed(_, code) | WriteOutcome::Refused(code) => return Err(attempts.code(code)),
            WriteOutcome::NotApplied(cause) => (false, cause),
            // If the node was created, it is deleted with its session.
            WriteOutcome::Unknown(cause @ Cause::Ended(SessionEnd::Expired)) => {
                (!session_has_ended(client, &generation, attempts.deadline).await, cause)
            }
            WriteOutcome::Unknown(cause) => (true, cause),
        };
        drop(create);
        attempts.retry(&generation, sent, cause).await?;
    }
}

/// Waits until a session that a server no longer knows is certain to have ended (decision 25). Returns false
/// if that is not known by the deadline. A session that cannot prove its end counts as ended.
async fn session_has_ended(client: &Client, generation: &SessionGeneration, deadline: Instant) -> bool {
    let shared = client.shared();
    if generation.session.closer().is_none() || planted!(ExpiredIsGone) {
        return true;
    }
    // On the heap, because this case is rare.
    let ended = Box::pin(async {
        tokio::select! {
            () = shared.notes.wait_ended(generation.session.id()) => true,
            () = shared.closing.cancelled() => false,
        }
    });
    timeout_at(deadline, ended).await.unwrap_or(false)
}

/// Returns the created node. The marker was set in the same transaction.
fn created(
    client: &Client,
    generation: &SessionGeneration,
    full: &str,
    data: &Bytes,
    marker: &docent_proto::Stat,
) -> Created {
    let stat = docent_proto::Stat {
        czxid: marker.mzxid,
        mzxid: marker.mzxid,
        pzxid: marker.mzxid,
        ctime: marker.mtime,
        mtime: marker.mtime,
        version: 0,
        cversion: 0,
        aversion: 0,
        ephemeral_owner: generation.session.id(),
        data_length: i32::try_from(data.len()).unwrap_or(i32::MAX),
        num_children: 0,
    };
    Created { path: client.shared().namespace.relative(full), stat: Stat::from(stat) }
}
