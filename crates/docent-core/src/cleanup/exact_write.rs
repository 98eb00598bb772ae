use super::Marker;
use crate::session::ask::{PAUSE, ask};
use crate::session::{Cause, Lane, Outcome, Pending, Reply, Session, SessionEnd, Watch, lookup};
use bytes::Bytes;
use docent_proto::{Code, MultiOp, MultiResult, Request, Response, Stat};
use tokio::time::{Instant, sleep, timeout_at};

/// Exact write on its way.
///
/// # On drop
/// The write is taken back if it was not sent. Else its marker is deleted, so that it is applied before that
/// or never.
#[derive(Debug)]
pub(crate) struct ExactWrite {
    /// Its marker; `None` once the outcome is told.
    marker: Option<Marker>,
    /// Data of the marker once the write is applied.
    id: Bytes,
    reply: Pending,
    /// Set once the reply was lost: `settle` finds the outcome out.
    lost: bool,
}

/// Outcome of an exact write.
#[derive(Debug)]
pub(crate) enum Ended {
    /// It was applied: the results of the operations, unless the reply was lost, and the marker's stat, which
    /// has the time and the number of the transaction.
    Applied(Option<Vec<MultiResult>>, Stat),
    /// The operation with this index was refused: nothing was applied and nothing will be.
    Failed(usize, Code),
    /// It was not applied and never will be.
    NotApplied(Cause),
    /// As `NotApplied`: a server refused it as a whole.
    Refused(Code),
    /// As `NotApplied`: somebody else deleted or set the marker. It takes a new one.
    NoMarker,
    /// The session ended, or the time was over, before the outcome could be found out.
    Unknown(Cause),
}

impl ExactWrite {
    /// Submits `ops`: they have their place in the order of calls when this returns.
    pub(crate) fn submit(marker: Marker, ops: impl IntoIterator<Item = MultiOp>, lane: Lane) -> Self {
        Self::submit_with(marker, ops, |session, write| session.submit(write, lane))
    }

    /// As [`submit`](Self::submit), but only with `losses` lost links and before `watch` fires: what was
    /// known of a node may be out of date after that.
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
        // The marker comes first: where another operation is refused, it is certain that the marker had its
        // version, so that no earlier attempt was applied (decision 11).
        let mut all = vec![set(&marker, &id)];
        all.extend(ops);
        let session = &marker.generation.session;
        let reply = submit(&**session, Request::Multi(all));
        Self { marker: Some(marker), id, reply, lost: false }
    }

    /// Waits until its outcome is certain, at most until `deadline`.
    ///
    /// # Cancel safety
    /// Cancel safe: this can be called again.
    pub(crate) async fn ended(&mut self, deadline: Instant) -> Ended {
        if !self.lost {
            match self.reply.by(deadline).await {
                Outcome::Reply(reply) => return self.answered(reply),
                Outcome::NotSent(cause) => {
                    self.settled(None);
                    return Ended::NotApplied(cause);
                }
                // The reply may still come.
                Outcome::Unknown(Cause::Deadline) => return Ended::Unknown(Cause::Deadline),
                Outcome::Unknown(_) => self.lost = true,
            }
        }
        // On the heap, because it is rare.
        match timeout_at(deadline, Box::pin(self.settle())).await {
            Ok(ended) => ended,
            Err(_) => Ended::Unknown(Cause::Deadline),
        }
    }

    /// Takes it back. True when it never was sent and never will be.
    pub(crate) fn take_back(&mut self) -> bool {
        let taken_back = !self.lost && self.reply.withdraw();
        if taken_back {
            self.settled(None);
        }
        taken_back
    }

    /// Takes it back, for a caller that stops waiting for its outcome. Returns whether it may be applied: if
    /// so, the drop deletes its marker. `has_ended` says that the session has ended.
    pub(crate) async fn give_up(&mut self, has_ended: bool) -> bool {
        if self.lost {
            return true;
        }
        let may_be_applied = self.reply.give_up(has_ended).await;
        if !may_be_applied {
            self.settled(None);
        }
        may_be_applied
    }

    /// Gives the marker back for the next write; `version` is its new one, if it has changed.
    fn settled(&mut self, version: Option<i32>) {
        if let Some(mut marker) = self.marker.take() {
            marker.version = version.unwrap_or(marker.version);
            marker.give_back();
        }
    }

    fn answered(&mut self, reply: Reply) -> Ended {
        let mut results = match reply.result {
            Ok(Response::Multi(results)) if !results.is_empty() => results,
            Ok(_) => {
                self.lost = true;
                return Ended::Unknown(Cause::LinkLost);
            }
            Err(Code::SESSION_EXPIRED) => return Ended::NotApplied(Cause::Ended(SessionEnd::Expired)),
            Err(code) => {
                self.settled(None);
                return Ended::Refused(code);
            }
        };
        match results.remove(0) {
            MultiResult::Set(stat) => {
                self.settled(Some(stat.version));
                Ended::Applied(Some(results), *stat)
            }
            // The marker stays with this write, whose drop deletes it: nothing is known of a marker that
            // somebody else set (decision 5).
            MultiResult::Failed(Code::NO_NODE | Code::BAD_VERSION) => Ended::NoMarker,
            MultiResult::Failed(code) if code != Code::OK && code != Code::RUNTIME_INCONSISTENCY => {
                self.settled(None);
                Ended::Refused(code)
            }
            _ => {
                self.settled(None);
                failed(&results)
            }
        }
    }

    /// Fences the write out, unless it was applied: sets the marker from the version that the write asks for.
    /// Only one of the two can be applied, and either way the outcome is certain, by a write at a quorum
    /// (decision 11).
    async fn settle(&mut self) -> Ended {
        let Some(marker) = &self.marker else { return Ended::Unknown(Cause::Deadline) };
        let (generation, path, version) = (marker.generation.clone(), marker.path.clone(), marker.version);
        if planted!(ExactWriteSentAgain) {
            self.settled(None);
            return Ended::NotApplied(Cause::LinkLost);
        }
        if planted!(MarkerWithoutVersion) {
            return self.settle_by_absence().await;
        }
        let fence = Bytes::copy_from_slice(generation.fresh_id().as_bytes());
        // After a lost reply it is repeated with the same version: of the write and all fences one is
        // applied.
        let bump = || {
            let set = MultiOp::SetData { path: path.clone(), data: Some(fence.clone()), version };
            Request::Multi(vec![set])
        };
        loop {
            let code = match ask(&generation, Lane::Cleanup, bump).await {
                Ok(reply) => match reply.refusal() {
                    // The fence was applied: the write asks for a version that is past, and is refused for
                    // good.
                    None => {
                        self.settled(Some(version.wrapping_add(1)));
                        return Ended::NotApplied(Cause::LinkLost);
                    }
                    Some(code) => code,
                },
                Err(stop) => return Ended::Unknown(stop.into()),
            };
            match code {
                // The write was applied, or an earlier fence: the marker's data tells which.
                Code::BAD_VERSION => match lookup::read(&generation, &path).await {
                    Ok(Some((data, stat))) if data.as_ref() == Some(&self.id) => {
                        self.settled(Some(stat.version));
                        return Ended::Applied(None, stat);
                    }
                    // Set once since, and not by the write, which is refused for good.
                    Ok(Some((_, stat))) if stat.version == version.wrapping_add(1) => {
                        self.settled(Some(stat.version));
                        return Ended::NotApplied(Cause::LinkLost);
                    }
                    // Somebody else set or deleted the marker: the outcome cannot be told, and is not
                    // guessed.
                    Ok(_) => return Ended::Unknown(Cause::Deadline),
                    Err(Cause::Ended(end)) => return Ended::Unknown(Cause::Ended(end)),
                    Err(_) => sleep(PAUSE).await,
                },
                Code::SESSION_EXPIRED => return Ended::Unknown(Cause::Ended(SessionEnd::Expired)),
                Code::THROTTLED => sleep(PAUSE).await,
                // Without the marker nothing is proven.
                _ => return Ended::Unknown(Cause::Deadline),
            }
        }
    }

    /// The defect [`MarkerWithoutVersion`](crate::planted::Planted::MarkerWithoutVersion): a marker that does
    /// not show the write yet is taken for proof that it never will.
    async fn settle_by_absence(&mut self) -> Ended {
        let Some(marker) = &self.marker else { return Ended::Unknown(Cause::Deadline) };
        match lookup::read(&marker.generation, &marker.path).await {
            Ok(Some((data, stat))) if data.as_ref() == Some(&self.id) => {
                self.settled(Some(stat.version));
                Ended::Applied(None, stat)
            }
            Ok(Some((_, stat))) => {
                self.settled(Some(stat.version));
                Ended::NotApplied(Cause::LinkLost)
            }
            Ok(None) => Ended::Unknown(Cause::Deadline),
            Err(cause) => Ended::Unknown(cause),
        }
    }
}

impl Drop for ExactWrite {
    fn drop(&mut self) {
        self.take_back();
    }
}

/// Finds the operation that was refused: those before and after it have no code of their own.
fn failed(results: &[MultiResult]) -> Ended {
    let failed = results.iter().enumerate().find_map(|(index, result)| match result {
        MultiResult::Failed(Code::OK | Code::RUNTIME_INCONSISTENCY) => None,
        MultiResult::Failed(code) => Some(Ended::Failed(index, *code)),
        _ => None,
    });
    failed.unwrap_or(Ended::Refused(Code::RUNTIME_INCONSISTENCY))
}

/// Sets the marker to `id` from the version that it has.
fn set(marker: &Marker, id: &Bytes) -> MultiOp {
    let version = if planted!(MarkerWithoutVersion) { -1 } else { marker.version };
    MultiOp::SetData { path: marker.path.clone(), data: Some(id.clone()), version }
}
