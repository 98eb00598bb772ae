use super::armed::Armed;
use super::step_error::StepError;
use crate::cleanup::{ExactWrite, Marker, Near, NoOwnNode, WriteOutcome};
use crate::guard::SessionGeneration;
use crate::operation::Shared;
use crate::session::{Lane, Watch};
use crate::time::deadline;
use docent_proto::{Code, MultiOp};
use std::sync::Arc;
use std::time::Duration;

/// Outcome of an exact write of a kept node.
pub(super) enum Written {
    /// The write was applied by the transaction with this number.
    Applied(i64),
    /// The operation with this index was refused; nothing was applied and nothing will be.
    Refused(usize, Code),
}

/// Submits `ops`, which concern the node at `full`, as an exact write.
pub(super) async fn submit(
    shared: &Shared,
    generation: &Arc<SessionGeneration>,
    full: &str,
    ops: impl IntoIterator<Item = MultiOp>,
) -> Result<ExactWrite, StepError> {
    Ok(ExactWrite::submit(marker(shared, generation, full).await?, ops, Lane::Call))
}

/// Submits `op`, which relies on the node being as it was read. The request is sent only if no event about
/// the node has arrived on the link, including events that arrived while the process was stalled.
pub(super) async fn submit_known(
    shared: &Shared,
    generation: &Arc<SessionGeneration>,
    known: &mut Armed,
    op: MultiOp,
) -> Result<Option<ExactWrite>, StepError> {
    let marker = marker(shared, generation, op.path()).await?;
    // Check after taking the marker, which may have required waiting.
    let Some(losses) = known.losses_if_unchanged(generation) else {
        marker.unused();
        return Ok(None);
    };
    Ok(Some(ExactWrite::submit_on((losses, known.watch()), marker, op, Lane::Call)))
}

/// Submits `op`, which relies on a read that was sent after `losses` lost links. If the node has a `watch`,
/// the watch must not have fired.
pub(super) async fn submit_on(
    shared: &Shared,
    generation: &Arc<SessionGeneration>,
    (losses, watch): (u64, Option<&Watch>),
    op: MultiOp,
) -> Result<ExactWrite, StepError> {
    let marker = marker(shared, generation, op.path()).await?;
    Ok(ExactWrite::submit_on((losses, watch), marker, op, Lane::Call))
}

async fn marker(
    shared: &Shared,
    generation: &Arc<SessionGeneration>,
    full: &str,
) -> Result<Marker, StepError> {
    match Marker::take(shared, generation, Near::Path(full), deadline(Duration::MAX)).await {
        Ok(marker) => Ok(marker),
        Err(NoOwnNode::Cause(cause)) => Err(cause.into()),
        Err(NoOwnNode::Refused(error)) => Err(StepError::Refused(error.of_own_node("create"))),
    }
}

/// Waits until the outcome of `write` is certain. Calls `unknown` if the write may still be applied.
pub(super) async fn written(mut write: ExactWrite, unknown: impl FnOnce()) -> Result<Written, StepError> {
    match write.outcome(deadline(Duration::MAX)).await {
        WriteOutcome::Applied(_, marker) => Ok(Written::Applied(marker.mzxid)),
        WriteOutcome::Failed(index, code) => Ok(Written::Refused(index, code)),
        WriteOutcome::Refused(Code::SESSION_EXPIRED) => Err(StepError::Ended),
        WriteOutcome::Refused(Code::THROTTLED) => Err(StepError::Busy),
        WriteOutcome::Refused(code) => Ok(Written::Refused(0, code)),
        WriteOutcome::NoMarker => Err(StepError::Retry),
        WriteOutcome::NotApplied(cause) => Err(cause.into()),
        WriteOutcome::Unknown(cause) => {
            unknown();
            Err(cause.into())
        }
    }
}
