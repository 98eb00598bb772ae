use super::Client;
use crate::cleanup::{ExactWrite, Near, WriteOutcome};
use crate::error::Error;
use crate::operation::Idempotency;
use crate::session::{Cause, Lane, lookup};
use docent_proto::{Code, MultiOp};
use tokio::time::timeout_at;

/// Deletes a node if it exists, by exact writes: a plain delete that is applied late could delete the next
/// node at the path (decision 11). Each attempt first checks whether the node is still the same.
pub(crate) async fn ensure_absent(client: &Client, path: &str) -> Result<(), Error> {
    let full = client.shared().namespace.full("delete", path)?;
    let mut attempts = client.attempts("delete", path, Idempotency::Idempotent);
    let mut known: Option<i64> = None;
    // True once the outcome of an attempt could not be determined.
    let mut unsettled = false;
    loop {
        let maybe = |error: Error| if unsettled { error.maybe_applied(true) } else { error };
        let generation = attempts.generation().await.map_err(maybe)?;
        // Get the marker first, because that may have to wait, and the check must use the same link as the
        // delete.
        let Some(marker) = attempts.marker(&generation, Near::Path(&full)).await.map_err(maybe)? else {
            continue;
        };
        let losses = generation.losses();
        let version = match timeout_at(attempts.deadline, lookup::stat(&generation, &full)).await {
            Ok(Ok(Some(stat))) if known.is_none_or(|czxid| czxid == stat.czxid) => {
                known = Some(stat.czxid);
                stat.version
            }
            other => {
                marker.unused();
                match other {
                    // The node does not exist, or another node has replaced it.
                    Ok(Ok(_)) => return Ok(()),
                    Ok(Err(cause)) => attempts.retry(&generation, false, cause).await.map_err(maybe)?,
                    Err(_) => return Err(maybe(attempts.timeout())),
                }
                continue;
            }
        };
        let delete = MultiOp::Delete { path: full.clone(), version };
        let mut write = ExactWrite::submit_on((losses, None), marker, delete, Lane::Call);
        let cause = match write.outcome(attempts.deadline).await {
            WriteOutcome::Applied(..) | WriteOutcome::Failed(_, Code::NO_NODE) => return Ok(()),
            // The node's data was set in the meantime, or another node has replaced it.
            WriteOutcome::Failed(_, Code::BAD_VERSION) | WriteOutcome::NoMarker => continue,
            WriteOutcome::Refused(Code::THROTTLED) => Cause::QueueFull,
            WriteOutcome::Failed(_, code) | WriteOutcome::Refused(code) => {
                return Err(maybe(attempts.code(code)));
            }
            WriteOutcome::NotApplied(cause) => cause,
            WriteOutcome::Unknown(cause) => {
                unsettled = true;
                cause
            }
        };
        drop(write);
        let retried = attempts.retry(&generation, false, cause).await;
        retried.map_err(|error| if unsettled { error.maybe_applied(true) } else { error })?;
    }
}
