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
    match Marker::take(shared, generation, deadline(Duration::MAX)).await {
        Ok(marker) => Ok(ExactWrite::submit(marker, ops, Lane::Call)),
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
