//! Exact writes as operations of a client: sent again until they are applied or refused. Operations end with
//! the guards they are bound to (decision 24).

use crate::cleanup::{ExactWrite, Near, WriteOutcome};
use crate::error::{Error, ErrorKind};
use crate::guard::{HoldState, LostReason, SessionGeneration};
use crate::operation::Attempts;
use crate::session::{Cause, Lane};
use docent_proto::{Code, MultiOp, MultiResult, Stat};
use futures_util::FutureExt;
use futures_util::future::select_all;
use std::future::{Future, pending};
use std::sync::Arc;

/// Outcome of an exact write, once it is certain.
pub(super) enum Exact {
    /// The write was applied. Holds the results, unless the reply was lost, and the stat of the marker, which
    /// was set in the same transaction.
    Applied(Option<Vec<MultiResult>>, Stat),
    /// The operation with this index was refused.
    Failed(usize, Code),
}

/// Applies `ops` exactly once, using a marker that may be created `near` some nodes. With `bound`, the write
/// is applied in that generation or not at all. It ends when one of `held` is lost.
///
/// # Errors
/// `OutcomeUnknown` if the session ended, the deadline passed, or one of `held` was lost before the outcome
/// was certain; `Lost` if one of `held` was lost before the write was sent.
///
/// # Cancel safety
/// This function is *not* cancel safe: the write may have been applied. A write that was not applied before
/// the marker is deleted never will be.
pub(super) async fn commit(
    attempts: &mut Attempts<'_>,
    ops: &[MultiOp],
    near: Near<'_>,
    bound: Option<&Arc<SessionGeneration>>,
    held: &[Arc<HoldState>],
) -> Result<Exact, Error> {
    let mut sent = None;
    match while_held(held, commit_once(attempts, ops, near, bound, held, &mut sent)).await {
        Ok(done) => done,
        Err(reason) => {
            let has_ended = bound.is_some_and(|generation| generation.ended().is_some());
            let may_be_applied = match &mut sent {
                Some(write) => ExactWrite::give_up(write, has_ended).await,
                None => false,
            };
            Err(lost_before_reply(attempts, reason, may_be_applied))
        }
    }
}

/// Like [`commit`], but ignores the loss of `held` while it waits. `sent` is the write whose outcome is not
/// known.
async fn commit_once(
    attempts: &mut Attempts<'_>,
    ops: &[MultiOp],
    near: Near<'_>,
    bound: Option<&Arc<SessionGeneration>>,
    held: &[Arc<HoldState>],
    sent: &mut Option<ExactWrite>,
) -> Result<Exact, Error> {
    loop {
        let generation = match bound {
            Some(generation) if generation.ended().is_some() => {
                return Err(attempts.error(ErrorKind::SessionChanged));
            }
            Some(generation) => Arc::clone(generation),
            None => attempts.generation().await?,
        };
        let Some(marker) = attempts.marker(&generation, near).await? else { continue };
        // In a process that was paused, the wait may have ended late.
        if let Some(reason) = first_lost(held).now_or_never() {
            marker.unused();
            return Err(lost_before_reply(attempts, reason, false));
        }
        let write = sent.insert(ExactWrite::submit(marker, ops.iter().cloned(), Lane::Call));
        let cause = match write.outcome(attempts.deadline).await {
            WriteOutcome::Applied(results, stat) => return Ok(Exact::Applied(results, stat)),
            WriteOutcome::Failed(index, code) => return Ok(Exact::Failed(index, code)),
            WriteOutcome::Refused(Code::THROTTLED) => Cause::QueueFull,
            WriteOutcome::Refused(code) => return Err(attempts.code(code)),
            WriteOutcome::NoMarker => {
                *sent = None;
                continue;
            }
            WriteOutcome::NotApplied(cause) => cause,
            WriteOutcome::Unknown(cause) => {
                attempts.retry(&generation, true, cause).await?;
                continue;
            }
        };
        // Released before the pause, because other writes may need the marker and this write is not applied.
        *sent = None;
        attempts.retry(&generation, false, cause).await?;
    }
}

/// Polls `operation` until it completes or one of the guards is no longer certain; then drops `operation`.
///
/// # Errors
/// The reason for which the first of the guards is lost.
pub(crate) async fn while_held<T>(
    held: &[Arc<HoldState>],
    operation: impl Future<Output = T>,
) -> Result<T, LostReason> {
    if planted!(OperationOutlivesGuard) {
        return Ok(operation.await);
    }
    tokio::select! {
        // A reply that has arrived counts, even if a guard is lost at the same time.
        biased;
        done = operation => Ok(done),
        reason = first_lost(held) => Err(reason),
    }
}

/// Resolves with the reason when the first of the guards is no longer certain.
pub(super) async fn first_lost(held: &[Arc<HoldState>]) -> LostReason {
    match held {
        [] => pending().await,
        [one] => one.uncertain().await,
        many => select_all(many.iter().map(|held| Box::pin(held.uncertain()))).await.0,
    }
}

/// Returns the error of a write whose guard was lost before the reply arrived. `Lost` means that nothing was
/// or will be applied; a write that may have been applied has an unknown outcome.
pub(super) fn lost_before_reply(attempts: &Attempts<'_>, reason: LostReason, may_be_applied: bool) -> Error {
    match (reason, may_be_applied) {
        (LostReason::Closed, _) => attempts.error(ErrorKind::Closed).maybe_applied(may_be_applied),
        (_, false) => attempts.error(ErrorKind::Lost(reason)),
        (_, true) => {
            let detail = format!("the guard was lost before the reply: {reason}");
            attempts.error(ErrorKind::OutcomeUnknown).because(detail)
        }
    }
}
