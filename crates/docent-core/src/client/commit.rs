//! Exact writes as operations of a client: sent again until they are applied or refused.

use crate::cleanup::{Ended, ExactWrite};
use crate::error::{Error, ErrorKind};
use crate::guard::{HoldState, SessionGeneration};
use crate::operation::Attempts;
use crate::session::{Cause, Lane};
use docent_proto::{Code, MultiOp, MultiResult, Stat};
use std::sync::Arc;
use tokio::time::timeout_at;

/// Outcome of an exact write, when it is certain.
pub(super) enum Exact {
    /// It was applied: the results, unless the reply was lost, and the stat of the marker, which was set in
    /// the same transaction.
    Applied(Option<Vec<MultiResult>>, Stat),
    /// The operation with this index was refused.
    Failed(usize, Code),
}

/// Applies `ops` once. With `bound` it happens in that generation or not at all, and only while the nodes of
/// `held` are the same.
///
/// # Errors
/// `OutcomeUnknown` when the session ended, or the deadline passed, before the outcome was certain; `Lost`
/// when one of `held` is.
///
/// # Cancel safety
/// *Not* cancel safe: it may have been applied. If it was not before the marker is deleted, it never will be.
pub(super) async fn commit(
    attempts: &mut Attempts<'_>,
    ops: &[MultiOp],
    bound: Option<&Arc<SessionGeneration>>,
    held: &[Arc<HoldState>],
) -> Result<Exact, Error> {
    loop {
        let generation = match bound {
            Some(generation) if generation.ended().is_some() => {
                return Err(attempts.error(ErrorKind::SessionChanged));
            }
            Some(generation) => Arc::clone(generation),
            None => attempts.generation().await?,
        };
        let Some(marker) = attempts.marker(&generation).await? else { continue };
        // After the marker, which may take a wait. The write is sent on the link on which the nodes were seen
        // to be the same, or not at all: over another link somebody's next node could be hit (decision 8).
        let losses = match confirm(attempts, &generation, held).await {
            Ok(losses) => losses,
            Err(error) => {
                marker.unused();
                return Err(error);
            }
        };
        let mut write = ExactWrite::submit_on(losses, marker, ops.iter().cloned(), Lane::Call);
        let cause = match write.ended(attempts.deadline).await {
            Ended::Applied(results, stat) => return Ok(Exact::Applied(results, stat)),
            Ended::Failed(index, code) => return Ok(Exact::Failed(index, code)),
            Ended::Refused(Code::THROTTLED) => Cause::QueueFull,
            Ended::Refused(code) => return Err(attempts.code(code)),
            Ended::NoMarker => continue,
            Ended::NotApplied(cause) => cause,
            Ended::Unknown(cause) => {
                attempts.retry(&generation, true, cause).await?;
                continue;
            }
        };
        // Before the pause: other writes may need the marker.
        drop(write);
        attempts.retry(&generation, false, cause).await?;
    }
}

/// Makes certain that the nodes of `held` are still those that were made, also where a link was lost since.
/// Returns the number of lost links at that time; `None` where no node can be in doubt.
pub(super) async fn confirm(
    attempts: &mut Attempts<'_>,
    generation: &Arc<SessionGeneration>,
    held: &[Arc<HoldState>],
) -> Result<Option<u64>, Error> {
    if !held.iter().any(|held| held.node.shares_path()) {
        return Ok(None);
    }
    loop {
        let losses = generation.losses();
        for held in held {
            match timeout_at(attempts.deadline, held.confirm()).await {
                Ok(Ok(())) => {}
                Ok(Err(Ok(reason))) => return Err(attempts.error(ErrorKind::Lost(reason))),
                Ok(Err(Err(cause))) => attempts.retry(generation, false, cause).await?,
                Err(_) => return Err(attempts.timeout()),
            }
        }
        // All must be confirmed on one link: where it was lost between two looks they are made again. In a
        // session that has ended nothing can be sent, so that one more look would not help.
        let all_confirmed = held.iter().all(|held| held.node.is_confirmed_at(losses));
        if all_confirmed || generation.ended().is_some() {
            return Ok(Some(losses));
        }
    }
}
