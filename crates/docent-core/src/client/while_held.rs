//! Operations that end with the guards they are bound to (decision 24).

use crate::error::{Error, ErrorKind};
use crate::guard::{HoldState, LostReason};
use crate::operation::Attempts;
use futures_util::future::select_all;
use std::future::{Future, pending};
use std::sync::Arc;

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
