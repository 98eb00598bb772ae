//! Creates of ephemeral nodes as exact writes: one that is applied late could bring back a node that was
//! deleted since.

use super::{Client, PARENT_ROUNDS, create_parents, refused_parent};
use crate::cleanup::{Ended, ExactWrite, Made, Marker, Near, numbered};
use crate::error::Error;
use crate::guard::SessionGeneration;
use crate::node::{Created, Stat};
use crate::operation::{Attempts, Idempotency};
use crate::session::{Cause, Lane, SessionEnd};
use bytes::Bytes;
use docent_proto::{Code, Create, CreateMode, MultiOp, MultiResult};
use std::sync::Arc;
use tokio::time::{Instant, timeout_at};

/// The create of an ephemeral node on its way. If it is dropped, the node is deleted as soon as its fate is
/// known.
struct Making {
    generation: Arc<SessionGeneration>,
    full: String,
    is_sequential: bool,
    /// The write; `None` once its outcome is certain.
    write: Option<ExactWrite>,
    /// Transaction that made the node, while its name is not known yet.
    nameless: Option<i64>,
}

impl Making {
    fn submit(generation: &Arc<SessionGeneration>, marker: Marker, create: Create) -> Self {
        let (full, mode) = (create.path.clone(), CreateMode::from_flags(create.flags));
        let write = ExactWrite::submit(marker, [MultiOp::Create(create)], Lane::Call);
        let is_sequential = mode.is_some_and(CreateMode::is_sequential);
        Self { generation: Arc::clone(generation), full, is_sequential, write: Some(write), nameless: None }
    }

    async fn ended(&mut self, attempts: &Attempts<'_>) -> Ended {
        let Some(write) = &mut self.write else { return Ended::NotApplied(Cause::LinkLost) };
        let ended = write.ended(attempts.deadline).await;
        // A write whose outcome is not certain is undone by the drop.
        if !matches!(ended, Ended::Unknown(_)) {
            self.write = None;
        }
        ended
    }
}

impl Making {
    /// Finds the name of the node that the transaction `czxid` made: the reply that told it was lost.
    async fn name(&mut self, attempts: &Attempts<'_>, czxid: i64) -> Result<String, Error> {
        self.nameless = Some(czxid);
        let found = timeout_at(attempts.deadline, numbered(&self.generation, &self.full, czxid)).await;
        // A node that could not be found is looked for again by the drop, and deleted.
        let path = found.ok().and_then(Result::ok).ok_or_else(|| attempts.unknown())?;
        self.nameless = None;
        let path = path.ok_or_else(|| attempts.unknown())?;
        self.generation.session.owns(&path);
        Ok(path)
    }
}

impl Drop for Making {
    fn drop(&mut self) {
        if let Some(czxid) = self.nameless {
            return self.generation.cleanup.undo_numbered(
                &self.generation,
                std::mem::take(&mut self.full),
                czxid,
            );
        }
        if let Some(mut write) = self.write.take()
            && !write.take_back()
        {
            let full = std::mem::take(&mut self.full);
            let made = if self.is_sequential { Made::Numbered(full) } else { Made::At(full) };
            self.generation.cleanup.undo_exact(&self.generation, write, made);
        }
    }
}

/// Creates an ephemeral node; on `NoNode` its parents and then the node again, in one trip. `request` makes
/// the create.
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
            create_parents(client.shared(), &generation, &full)
        } else {
            Vec::new()
        };
        let mut making = Making::submit(&generation, marker, create);
        let (sent, cause) = match making.ended(&attempts).await {
            Ended::Applied(results, marker) => {
                let path = match results.and_then(|results| results.into_iter().next()) {
                    Some(MultiResult::Created { path, .. }) => path,
                    Some(_) => return Err(attempts.unknown()),
                    None if making.is_sequential => making.name(&attempts, marker.mzxid).await?,
                    None => {
                        generation.session.owns(&full);
                        full
                    }
                };
                return Ok(created(client, &generation, &path, data, &marker));
            }
            Ended::Failed(_, Code::NO_NODE) if missing_parents < PARENT_ROUNDS => {
                // On the heap, because it is rare.
                let refused = Box::pin(refused_parent(client.shared(), "create", &full, parents)).await;
                refused.map_or(Ok(()), Err)?;
                missing_parents += 1;
                continue;
            }
            Ended::NoMarker => continue,
            Ended::Refused(Code::THROTTLED) => (false, Cause::QueueFull),
            Ended::Failed(_, code) | Ended::Refused(code) => return Err(attempts.code(code)),
            Ended::NotApplied(cause) => (false, cause),
            // The node, if it was made, goes with its session.
            Ended::Unknown(cause @ Cause::Ended(SessionEnd::Expired)) => {
                (!is_over(client, &generation, attempts.deadline).await, cause)
            }
            Ended::Unknown(cause) => (true, cause),
        };
        drop(making);
        attempts.retry(&generation, sent, cause).await?;
    }
}

/// Waits until the session, which a server does not know any more, is certainly over (decision 25); false
/// when that is not known by the deadline. A session that cannot prove it counts as over.
async fn is_over(client: &Client, generation: &SessionGeneration, deadline: Instant) -> bool {
    let shared = client.shared();
    if generation.session.closer().is_none() || planted!(ExpiredIsGone) {
        return true;
    }
    // On the heap, because it is rare.
    let over = Box::pin(async {
        tokio::select! {
            () = shared.notes.over(generation.session.id()) => true,
            () = shared.closing.cancelled() => false,
        }
    });
    timeout_at(deadline, over).await.unwrap_or(false)
}

/// The node as it was made: the marker was set in the same transaction.
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
