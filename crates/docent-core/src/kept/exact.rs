use super::armed::Armed;
use super::trouble::Trouble;
use crate::cleanup::{Ended, ExactWrite, Marker, NoMarker};
use crate::guard::SessionGeneration;
use crate::operation::Shared;
use crate::session::Lane;
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

/// Submits `ops` as an exact write.
pub(super) async fn submit(
    shared: &Shared,
    generation: &Arc<SessionGeneration>,
    ops: impl IntoIterator<Item = MultiOp>,
) -> Result<ExactWrite, Trouble> {
    Ok(ExactWrite::submit(marker(shared, generation).await?, ops, Lane::Call))
}

/// Submits `op`, which rests on the node being as it was seen, if it is so by then.
pub(super) async fn submit_known(
    shared: &Shared,
    generation: &Arc<SessionGeneration>,
    known: &mut Armed,
    op: MultiOp,
) -> Result<Option<ExactWrite>, Trouble> {
    let marker = marker(shared, generation).await?;
    // After the marker, which may have been waited for.
    let Some(losses) = known.stands(generation) else {
        marker.unused();
        return Ok(None);
    };
    Ok(Some(ExactWrite::submit_on(Some(losses), marker, [op], Lane::Call)))
}

async fn marker(shared: &Shared, generation: &Arc<SessionGeneration>) -> Result<Marker, Trouble> {
    match Marker::take(shared, generation, deadline(Duration::MAX)).await {
        Ok(marker) => Ok(marker),
        Err(NoMarker::Cause(cause)) => Err(cause.into()),
        Err(NoMarker::Refused(error)) => Err(Trouble::Refused(error)),
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
