use super::armed::Armed;
use super::trouble::Trouble;
use crate::cleanup::{Ended, ExactWrite, Marker, Near, NoOwnNode};
use crate::guard::SessionGeneration;
use crate::operation::Shared;
use crate::session::{Lane, Watch};
use crate::time::deadline;
use docent_proto::{Code, MultiOp};
use std::sync::Arc;
use std::time::Duration;

/// Outcome of an exact write of a kept node.
pub(super) enum Written {
    Applied,
    /// The operation with this index was refused; nothing was applied and nothing will be.
    Refused(usize, Code),
}

/// Submits `ops`, which are about the node at `full`, as an exact write.
pub(super) async fn submit(
    shared: &Shared,
    generation: &Arc<SessionGeneration>,
    full: &str,
    ops: impl IntoIterator<Item = MultiOp>,
) -> Result<ExactWrite, Trouble> {
    Ok(ExactWrite::submit(marker(shared, generation, full).await?, ops, Lane::Call))
}

/// Submits `op`, which rests on the node being as it was seen. It is sent only if the link has told of no
/// change of the node by then, also of one that came while the process was stalled.
pub(super) async fn submit_known(
    shared: &Shared,
    generation: &Arc<SessionGeneration>,
    known: &mut Armed,
    op: MultiOp,
) -> Result<Option<ExactWrite>, Trouble> {
    let marker = marker(shared, generation, op.path()).await?;
    // After the marker, which may have been waited for.
    let Some(losses) = known.stands(generation) else {
        marker.unused();
        return Ok(None);
    };
    Ok(Some(ExactWrite::submit_on((losses, known.watch()), marker, op, Lane::Call)))
}

/// Submits `op`, which rests on what a look showed that was sent after `losses` lost links. Where there is a
/// `watch` on the node it must not have fired, either.
pub(super) async fn submit_on(
    shared: &Shared,
    generation: &Arc<SessionGeneration>,
    (losses, watch): (u64, Option<&Watch>),
    op: MultiOp,
) -> Result<ExactWrite, Trouble> {
    let marker = marker(shared, generation, op.path()).await?;
    Ok(ExactWrite::submit_on((losses, watch), marker, op, Lane::Call))
}

async fn marker(shared: &Shared, generation: &Arc<SessionGeneration>, full: &str) -> Result<Marker, Trouble> {
    match Marker::take(shared, generation, Near::Path(full), deadline(Duration::MAX)).await {
        Ok(marker) => Ok(marker),
        Err(NoOwnNode::Cause(cause)) => Err(cause.into()),
        Err(NoOwnNode::Refused(error)) => Err(Trouble::Refused(error.of_own_node("create"))),
    }
}

/// Waits until the outcome of `write` is certain.
pub(super) async fn written(mut write: ExactWrite) -> Result<Written, Trouble> {
    match write.ended(deadline(Duration::MAX)).await {
        Ended::Applied(..) => Ok(Written::Applied),
        Ended::Failed(index, code) => Ok(Written::Refused(index, code)),
        Ended::Refused(Code::SESSION_EXPIRED) => Err(Trouble::Ended),
        Ended::Refused(Code::THROTTLED) => Err(Trouble::Busy),
        Ended::Refused(code) => Ok(Written::Refused(0, code)),
        Ended::NoMarker => Err(Trouble::Again),
        Ended::NotApplied(cause) | Ended::Unknown(cause) => Err(cause.into()),
    }
}
