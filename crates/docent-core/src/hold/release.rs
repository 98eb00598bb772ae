use crate::cleanup::{DeleteOutcome, Deletion};
use crate::error::{Error, ErrorKind};
use crate::guard::{HoldState, LostReason, Released};
use std::future::pending;
use tokio::time::Instant;

/// Waits until the node of `held` is deleted, at most until `deadline` or the end of its lease. A deletion
/// that takes longer continues in the background. `was_held` is the state of the guard at its release: a loss
/// after that is no error.
pub(crate) async fn await_deletion(
    operation: &'static str,
    path: &str,
    deadline: Instant,
    was_held: Result<(), LostReason>,
    held: &HoldState,
    deletion: Option<Deletion>,
) -> Result<Released, Error> {
    let error = |kind| Error::new(kind, operation).at(path);
    was_held.map_err(|reason| error(ErrorKind::Lost(reason)))?;
    let Some(deletion) = deletion.filter(|_| !planted!(ReleaseNotAwaited)) else {
        return Ok(Released::Done);
    };
    tokio::select! {
        // A reply that has already arrived counts.
        biased;
        outcome = deletion.by(deadline) => match outcome {
            DeleteOutcome::Deleted => Ok(Released::Done),
            DeleteOutcome::Refused(code) => {
                Err(Error::from_code(code, operation).at(path).needing("DELETE"))
            }
            DeleteOutcome::Closed => Err(error(ErrorKind::Closed)),
            DeleteOutcome::Timeout => Ok(Released::Pending),
        },
        () = lease_lapsed(held) => Ok(Released::Pending),
    }
}

/// Waits for the end of the lease. Never resolves if the client is closed, because a closing client completes
/// pending deletes.
async fn lease_lapsed(held: &HoldState) {
    if held.lease_lapsed().await == LostReason::Closed {
        pending::<()>().await;
    }
}
