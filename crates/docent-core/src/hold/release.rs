use crate::cleanup::{DeleteOutcome, Deletion};
use crate::error::{Error, ErrorKind};
use crate::guard::{HoldState, LostReason};
use std::future::pending;
use tokio::time::Instant;

/// Waits until the node of `held` is deleted, at most until its lease is over. A deletion that takes longer
/// continues in the background.
pub(crate) async fn await_deletion(
    operation: &'static str,
    path: &str,
    deadline: Instant,
    was_held: Result<(), LostReason>,
    held: &HoldState,
    deletion: Option<Deletion>,
) -> Result<(), Error> {
    let error = |kind| Error::new(kind, operation).at(path);
    let lost = |reason| error(ErrorKind::Lost(reason));
    was_held.map_err(lost)?;
    let Some(deletion) = deletion.filter(|_| !planted!(ReleaseNotAwaited)) else { return Ok(()) };
    tokio::select! {
        // A reply that has already arrived counts.
        biased;
        outcome = deletion.by(deadline) => match outcome {
            DeleteOutcome::Deleted => Ok(()),
            DeleteOutcome::Refused(code) => Err(Error::from_code(code, operation).at(path)),
            DeleteOutcome::Closed => Err(error(ErrorKind::Closed)),
            DeleteOutcome::Timeout => {
                Err(error(ErrorKind::Timeout).because("the deletion continues in the background"))
            }
        },
        reason = lease_lapsed(held) => Err(lost(reason)),
    }
}

/// Same as `HoldState::lease_lapsed`, but never resolves if the client is closed, because a closing client
/// completes pending deletes.
async fn lease_lapsed(held: &HoldState) -> LostReason {
    match held.lease_lapsed().await {
        LostReason::Closed => pending().await,
        reason => reason,
    }
}
