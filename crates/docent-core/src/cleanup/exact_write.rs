use super::by_czxid::{delete_by_czxid, delete_claim};
use super::by_name::children;
use super::{Marker, NewClaim, OwnedNode};
use crate::guard::SessionGeneration;
use crate::operation::Shared;
use crate::session::context::{PAUSE, send_until_answered};
use crate::session::{Cause, Lane, Outcome, Pending, Reply, Session, SessionEnd, Watch, lookup};
use crate::time::deadline;
use bytes::Bytes;
use docent_proto::{Code, MultiOp, MultiResult, Request, Response, Stat, parent};
use futures_util::future::join_all;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, sleep, timeout_at};

/// An exact write in flight.
///
/// # On drop
/// The write is withdrawn if it was not sent yet. Otherwise its marker is deleted, so that the write is
/// applied before that deletion or never.
#[derive(Debug)]
pub(crate) struct ExactWrite {
    /// The write's marker; `None` after the outcome was returned.
    marker: Option<Marker>,
    /// Data that the marker has after the write is applied.
    id: Bytes,
    reply: Pending,
    /// Set when the reply was lost: `determine_outcome` then determines the outcome.
    lost: bool,
}

/// Outcome of an exact write.
#[derive(Debug)]
pub(crate) enum WriteOutcome {
    /// The write was applied. Contains the results of the operations, unless the reply was lost, and the
    /// marker's stat, which has the time and the number of the transaction.
    Applied(Option<Vec<MultiResult>>, Stat),
    /// The operation with this index was refused: nothing was applied and nothing will be.
    Failed(usize, Code),
    /// The write was not applied and never will be.
    NotApplied(Cause),
    /// Same as `NotApplied`: a server refused the write as a whole.
    Refused(Code),
    /// Same as `NotApplied`: another client deleted or set the marker. A new marker is necessary.
    NoMarker,
    /// The session ended, or the deadline passed, before the outcome could be determined.
    Unknown(Cause),
}

impl ExactWrite {
    /// Submits `ops`, which have their place in the order of calls when this returns.
    pub(crate) fn submit(marker: Marker, ops: impl IntoIterator<Item = MultiOp>, lane: Lane) -> Self {
        Self::submit_with(marker, ops, |session, write| session.submit(write, lane))
    }

    /// Same as [`submit`](Self::submit), but sent only while the number of lost links is `losses` and `watch`
    /// has not fired. After that, what is known about a node may be out of date.
    pub(crate) fn submit_on(
        (losses, watch): (u64, Option<&Watch>),
        marker: Marker,
        op: MultiOp,
        lane: Lane,
    ) -> Self {
        Self::submit_with(marker, [op], |session, write| session.submit_on(write, lane, losses, watch))
    }

    fn submit_with(
        marker: Marker,
        ops: impl IntoIterator<Item = MultiOp>,
        submit: impl FnOnce(&dyn Session, Request) -> Pending,
    ) -> Self {
        let id = Bytes::copy_from_slice(marker.generation.fresh_id().as_bytes());
        // The marker comes first: if another operation is refused, the marker certainly had its version, so
        // no earlier attempt was applied (decision 11).
        let mut all = vec![set(&marker, &id)];
        all.extend(ops);
        let session = &marker.generation.session;
        let reply = submit(&**session, Request::Multi(all));
        Self { marker: Some(marker), id, reply, lost: false }
    }

    /// Waits until the outcome is certain, at most until `deadline`.
    ///
    /// # Cancel safety
    /// Cancel safe: this method can be called again.
    pub(crate) async fn outcome(&mut self, deadline: Instant) -> WriteOutcome {
        if !self.lost {
            match self.reply.by(deadline).await {
                Outcome::Reply(reply) => return self.answered(reply),
                Outcome::NotSent(cause) => {
                    self.return_marker(None);
                    return WriteOutcome::NotApplied(cause);
                }
                // The reply may still arrive.
                Outcome::Unknown(Cause::Deadline) => return WriteOutcome::Unknown(Cause::Deadline),
                Outcome::Unknown(_) => self.lost = true,
            }
        }
        // Boxed because this is rare.
        match timeout_at(deadline, Box::pin(self.determine_outcome())).await {
            Ok(ended) => ended,
            Err(_) => WriteOutcome::Unknown(Cause::Deadline),
        }
    }

    /// Withdraws the write. Returns true if the write was never sent and never will be.
    pub(crate) fn withdraw(&mut self) -> bool {
        let withdrawn = !self.lost && self.reply.withdraw();
        if withdrawn {
            self.return_marker(None);
        }
        withdrawn
    }

    /// Withdraws the write, for a caller that stops waiting for its outcome. Returns whether the write may be
    /// applied: if so, dropping it deletes its marker. `has_ended` is true if the session has ended.
    pub(crate) async fn give_up(&mut self, has_ended: bool) -> bool {
        if self.lost {
            return true;
        }
        let may_be_applied = self.reply.give_up(has_ended).await;
        if !may_be_applied {
            self.return_marker(None);
        }
        may_be_applied
    }

    /// Returns the marker for the next write; `version` is the marker's new version, if it has changed.
    fn return_marker(&mut self, version: Option<i32>) {
        if let Some(mut marker) = self.marker.take() {
            marker.version = version.unwrap_or(marker.version);
            marker.give_back();
        }
    }

    fn answered(&mut self, reply: Reply) -> WriteOutcome {
        let mut results = match reply.result {
            Ok(Response::Multi(results)) if !results.is_empty() => results,
            Ok(_) => {
                self.lost = true;
                return WriteOutcome::Unknown(Cause::LinkLost);
            }
            Err(Code::SESSION_EXPIRED) => return WriteOutcome::NotApplied(Cause::Ended(SessionEnd::Expired)),
            Err(code) => {
                self.return_marker(None);
                return WriteOutcome::Refused(code);
            }
        };
        match results.remove(0) {
            MultiResult::Set(stat) => {
                self.return_marker(Some(stat.version));
                WriteOutcome::Applied(Some(results), *stat)
            }
            // The marker stays with this write, whose drop deletes it: if another client set the marker, its
            // state is unknown (decision 5).
            MultiResult::Failed(Code::NO_NODE | Code::BAD_VERSION) => WriteOutcome::NoMarker,
            MultiResult::Failed(code) if code != Code::OK && code != Code::RUNTIME_INCONSISTENCY => {
                self.return_marker(None);
                WriteOutcome::Refused(code)
            }
            _ => {
                self.return_marker(None);
                failed(&results)
            }
        }
    }

    /// Fences the write out, unless it was applied: sets the marker with the version that the write expects.
    /// Only one of the two can be applied, and either way a write through a quorum makes the outcome certain
    /// (decision 11).
    async fn determine_outcome(&mut self) -> WriteOutcome {
        let Some(marker) = &self.marker else { return WriteOutcome::Unknown(Cause::Deadline) };
        let (generation, path, version) = (marker.generation.clone(), marker.path.clone(), marker.version);
        if planted!(ExactWriteSentAgain) {
            self.return_marker(None);
            return WriteOutcome::NotApplied(Cause::LinkLost);
        }
        if planted!(MarkerWithoutVersion) {
            return self.outcome_by_absence().await;
        }
        let fence = Bytes::copy_from_slice(generation.fresh_id().as_bytes());
        // After a lost reply, the request is repeated with the same version: of the write and all fences,
        // exactly one is applied.
        let bump = || {
            let set = MultiOp::SetData { path: path.clone(), data: Some(fence.clone()), version };
            Request::Multi(vec![set])
        };
        loop {
            let code = match send_until_answered(&generation, Lane::Cleanup, bump).await {
                Ok(reply) => match reply.refusal() {
                    // The fence was applied: the version that the write expects has passed, so the write can
                    // never be applied.
                    None => {
                        self.return_marker(Some(version.wrapping_add(1)));
                        return WriteOutcome::NotApplied(Cause::LinkLost);
                    }
                    Some(code) => code,
                },
                Err(stop) => return WriteOutcome::Unknown(stop.into()),
            };
            match code {
                // Either the write or an earlier fence was applied: the marker's data shows which.
                Code::BAD_VERSION => match lookup::read(&generation, &path).await {
                    Ok(Some((data, stat))) if data.as_ref() == Some(&self.id) => {
                        self.return_marker(Some(stat.version));
                        return WriteOutcome::Applied(None, stat);
                    }
                    // The marker was set once since, but not by the write, which can never be applied now.
                    Ok(Some((_, stat))) if stat.version == version.wrapping_add(1) => {
                        self.return_marker(Some(stat.version));
                        return WriteOutcome::NotApplied(Cause::LinkLost);
                    }
                    // Another client set or deleted the marker: the outcome cannot be determined.
                    Ok(_) => return WriteOutcome::Unknown(Cause::Deadline),
                    Err(Cause::Ended(end)) => return WriteOutcome::Unknown(Cause::Ended(end)),
                    Err(_) => sleep(PAUSE).await,
                },
                Code::SESSION_EXPIRED => return WriteOutcome::Unknown(Cause::Ended(SessionEnd::Expired)),
                Code::THROTTLED => sleep(PAUSE).await,
                // Without the marker, nothing is proven.
                _ => return WriteOutcome::Unknown(Cause::Deadline),
            }
        }
    }

    /// Planted defect [`MarkerWithoutVersion`](crate::planted::Planted::MarkerWithoutVersion): a marker that
    /// does not show the write yet is taken as proof that it never will.
    async fn outcome_by_absence(&mut self) -> WriteOutcome {
        let Some(marker) = &self.marker else { return WriteOutcome::Unknown(Cause::Deadline) };
        match lookup::read(&marker.generation, &marker.path).await {
            Ok(Some((data, stat))) if data.as_ref() == Some(&self.id) => {
                self.return_marker(Some(stat.version));
                WriteOutcome::Applied(None, stat)
            }
            Ok(Some((_, stat))) => {
                self.return_marker(Some(stat.version));
                WriteOutcome::NotApplied(Cause::LinkLost)
            }
            Ok(None) => WriteOutcome::Unknown(Cause::Deadline),
            Err(cause) => WriteOutcome::Unknown(cause),
        }
    }
}

impl Drop for ExactWrite {
    fn drop(&mut self) {
        self.withdraw();
    }
}

/// Finds the operation that was refused: the operations before and after it have no code of their own.
fn failed(results: &[MultiResult]) -> WriteOutcome {
    let failed = results.iter().enumerate().find_map(|(index, result)| match result {
        MultiResult::Failed(Code::OK | Code::RUNTIME_INCONSISTENCY) => None,
        MultiResult::Failed(code) => Some(WriteOutcome::Failed(index, *code)),
        _ => None,
    });
    failed.unwrap_or(WriteOutcome::Refused(Code::RUNTIME_INCONSISTENCY))
}

/// Sets the marker to `id`, expecting its current version.
fn set(marker: &Marker, id: &Bytes) -> MultiOp {
    let version = if planted!(MarkerWithoutVersion) { -1 } else { marker.version };
    MultiOp::SetData { path: marker.path.clone(), data: Some(id.clone()), version }
}

// Undoing of exact writes that no caller waits for any more.

/// Maximum pause between failed searches for a node with an unknown name.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// Stands for a transaction that created no node.
const UNKNOWN: i64 = 0;

/// Ephemeral nodes that an exact write creates.
#[derive(Debug)]
pub(crate) enum CreatedNodes {
    /// A node at this full path.
    At(String),
    /// One node whose full path is this prefix and a number.
    Numbered(String),
    /// Claims.
    Claims(Vec<NewClaim>),
}

/// Waits until the outcome of `write` is certain, and deletes the nodes that it created.
pub(super) async fn undo_exact(
    client: &Shared,
    generation: Arc<SessionGeneration>,
    mut write: ExactWrite,
    created: CreatedNodes,
) {
    let (results, stat) = match write.outcome(deadline(Duration::MAX)).await {
        WriteOutcome::Applied(results, stat) => (results, stat),
        // No answer or fence before the session ended: the nodes were deleted with the session.
        WriteOutcome::Unknown(Cause::Ended(_)) => return,
        // Another client deleted the marker, so nothing shows whether the write was applied. Only claims with
        // a proof can be distinguished from others.
        WriteOutcome::Unknown(_) => {
            if let CreatedNodes::Claims(claims) = created {
                let claims = claims.into_iter().filter(|claim| claim.handed_out);
                delete_claims(client, &generation, claims, UNKNOWN).await;
            }
            return;
        }
        _ => return,
    };
    // The marker was set in the transaction that created the nodes. Its number distinguishes each of them
    // from other nodes at the path (decision 8).
    match created {
        CreatedNodes::At(path) => delete_by_czxid(client, &generation, &path, stat.mzxid).await,
        CreatedNodes::Numbered(prefix) => match results.and_then(|results| results.into_iter().next()) {
            Some(MultiResult::Created { path, .. }) => {
                delete_by_czxid(client, &generation, &path, stat.mzxid).await;
            }
            _ => generation.cleanup.undo_numbered(&generation, prefix, stat.mzxid),
        },
        CreatedNodes::Claims(claims) => delete_claims(client, &generation, claims, stat.mzxid).await,
    }
}

/// Deletes the claims that the transaction `czxid` created.
async fn delete_claims(
    client: &Shared,
    generation: &Arc<SessionGeneration>,
    claims: impl IntoIterator<Item = NewClaim>,
    czxid: i64,
) {
    let claims = claims.into_iter().map(|claim| OwnedNode::claim(Arc::clone(generation), claim, czxid));
    join_all(claims.map(|claim| async move { delete_claim(client, &claim, None).await })).await;
}

/// Deletes the node that the transaction `czxid` created, whose path begins with `prefix`.
pub(super) async fn undo_numbered(
    client: &Shared,
    generation: Arc<SessionGeneration>,
    prefix: String,
    czxid: i64,
) {
    let mut pause = PAUSE;
    loop {
        match numbered(&generation, &prefix, czxid).await {
            Ok(None) | Err(Cause::Ended(_)) => return,
            Ok(Some(path)) => return delete_by_czxid(client, &generation, &path, czxid).await,
            Err(_) => {
                sleep(pause).await;
                pause = (pause * 2).min(LONGEST_PAUSE);
            }
        }
    }
}

/// Finds the node that the transaction `czxid` created, among the children whose paths begin with `prefix`.
///
/// # Errors
/// The cause for which the search failed.
pub(crate) async fn numbered(
    generation: &SessionGeneration,
    prefix: &str,
    czxid: i64,
) -> Result<Option<String>, Cause> {
    let paths = children(generation, parent(prefix).unwrap_or("/")).await?;
    for path in paths.into_iter().filter(|path| path.starts_with(prefix)) {
        if lookup::stat(generation, &path).await?.is_some_and(|stat| stat.czxid == czxid) {
            return Ok(Some(path));
        }
    }
    Ok(None)
}
