//! Deletes of nodes at paths that others may use once they are gone, each in its own session.

use super::by_name::is_final;
use super::{Ended, ExactWrite, Marker, Near, NoOwnNode, PAUSE};
use crate::guard::SessionGeneration;
use crate::operation::Shared;
use crate::session::{Cause, Lane, lookup};
use crate::time::deadline;
use docent_proto::{Code, MultiOp};
use std::sync::Arc;
use std::time::Duration;

/// Deletes the node at `path` that the transaction `czxid` made, in its own session: with that it would go
/// anyway, and in a later one the path may hold somebody else's node. For the same reason the delete is an
/// exact write, sent only while the node is the same: a delete that is applied late could hit the next node
/// there (decision 8).
pub(super) async fn delete_by_czxid(
    client: &Shared,
    generation: &Arc<SessionGeneration>,
    path: &str,
    czxid: i64,
) {
    loop {
        let mut write = match delete_exactly(client, generation, path, czxid).await {
            Ok(Some(write)) => write,
            Ok(None) | Err(Cause::Ended(_)) => return,
            Err(_) => {
                tokio::time::sleep(PAUSE).await;
                continue;
            }
        };
        match write.ended(deadline(Duration::MAX)).await {
            Ended::Applied(..) | Ended::Failed(_, Code::NO_NODE) => return,
            Ended::NotApplied(Cause::Ended(_)) | Ended::Unknown(Cause::Ended(_)) => return,
            Ended::Failed(_, code) | Ended::Refused(code) if is_final(code) => {
                tracing::error!(%path, generation = generation.number, %code, "failed to delete an ephemeral node; it remains until its session ends");
                return;
            }
            Ended::NotApplied(Cause::LinkLost) | Ended::NoMarker => {}
            _ => tokio::time::sleep(PAUSE).await,
        }
    }
}

/// Submits the delete if the node is still there and the same.
async fn delete_exactly(
    client: &Shared,
    generation: &Arc<SessionGeneration>,
    path: &str,
    czxid: i64,
) -> Result<Option<ExactWrite>, Cause> {
    // The marker first: it may take a wait, and the look must be made on the link that the delete is sent on.
    let marker = match Marker::take(client, generation, Near::Path(path), deadline(Duration::MAX)).await {
        Ok(marker) => marker,
        Err(NoOwnNode::Cause(cause)) => return Err(cause),
        Err(NoOwnNode::Refused(_)) => return Err(Cause::QueueFull),
    };
    let losses = generation.losses();
    match lookup::stat(generation, path).await {
        Ok(Some(stat)) if stat.czxid == czxid => {
            let delete = MultiOp::Delete { path: path.to_owned(), version: -1 };
            Ok(Some(ExactWrite::submit_on((losses, None), marker, delete, Lane::Cleanup)))
        }
        looked => {
            marker.unused();
            looked.map(|_| None)
        }
    }
}
