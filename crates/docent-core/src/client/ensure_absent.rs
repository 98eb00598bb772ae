use super::Client;
use crate::cleanup::{Ended, ExactWrite, Near};
use crate::error::Error;
use crate::operation::Idempotency;
use crate::session::{Cause, Lane, lookup};
use docent_proto::{Code, MultiOp};
use tokio::time::timeout_at;

/// Deletes a node if there is one, by exact writes: a plain delete that is applied late could hit the next
/// node at the path (decision 11). Before each attempt it looks whether the node is still the same.
pub(crate) async fn ensure_absent(client: &Client, path: &str) -> Result<(), Error> {
    let full = client.shared().namespace.full("delete", path)?;
    let mut attempts = client.attempts("delete", path, Idempotency::Idempotent);
    let mut known: Option<i64> = None;
    // Set once the outcome of an attempt could not be found out.
    let mut unsettled = false;
    loop {
        let maybe = |error: Error| if unsettled { error.maybe_applied(true) } else { error };
        let generation = attempts.generation().await.map_err(maybe)?;
        // The marker first: it may take a wait, and the look must be made on the link that the delete is sent
        // on.
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
                    // There is none, or it is another one by now.
                    Ok(Ok(_)) => return Ok(()),
                    Ok(Err(cause)) => attempts.retry(&generation, false, cause).await.map_err(maybe)?,
                    Err(_) => return Err(maybe(attempts.timeout())),
                }
                continue;
            }
        };
        let delete = MultiOp::Delete { path: full.clone(), version };
        let mut write = ExactWrite::submit_on((losses, None), marker, delete, Lane::Call);
        let cause = match write.ended(attempts.deadline).await {
            Ended::Applied(..) | Ended::Failed(_, Code::NO_NODE) => return Ok(()),
            // Its data was set meanwhile, or it is another node by now.
            Ended::Failed(_, Code::BAD_VERSION) | Ended::NoMarker => continue,
            Ended::Refused(Code::THROTTLED) => Cause::QueueFull,
            Ended::Failed(_, code) | Ended::Refused(code) => return Err(maybe(attempts.code(code))),
            Ended::NotApplied(cause) => cause,
            Ended::Unknown(cause) => {
                unsettled = true;
                cause
            }
        };
        drop(write);
        let retried = attempts.retry(&generation, false, cause).await;
        retried.map_err(|error| if unsettled { error.maybe_applied(true) } else { error })?;
    }
}
