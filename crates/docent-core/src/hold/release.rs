use crate::cleanup::{DeleteOutcome, Deletion};
use crate::error::{Error, ErrorKind};
use crate::guard::{HoldState, LostReason};
use std::future::pending;
use tokio::time::Instant;

/// Waits until the node of `held` is deleted, at most until its lease is over. A deletion that takes longer
/// continues in the background.
pub(crate) async fn gone(
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
        // A reply that is there counts.
        biased;
        outcome = deletion.by(deadline) => match outcome {
            DeleteOutcome::Gone => Ok(()),
            DeleteOutcome::Refused(code) => Err(Error::from_code(code, operation).at(path)),
            DeleteOutcome::Closed => Err(error(ErrorKind::Closed)),
            DeleteOutcome::Timeout => {
                Err(error(ErrorKind::Timeout).because("it goes on in the background"))
            }
        },
        reason = lease_over(held) => Err(lost(reason)),
    }
}

/// As `HoldState::lease_over`, but not for a client that is closed: it carries pending deletes out.
async fn lease_over(held: &HoldState) -> LostReason {
    match held.lease_over().await {
        LostReason::Closed => pending().await,
        reason => reason,
    }
}
