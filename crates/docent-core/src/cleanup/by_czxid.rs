//! Deletes of nodes whose paths other clients may use after the deletion, each in its own session.

use super::by_name::is_final;
use super::{ExactWrite, Marker, Near, NoOwnNode, PAUSE, WriteOutcome};
use crate::guard::SessionGeneration;
use crate::operation::Shared;
use crate::session::{Cause, Lane, lookup};
use crate::time::deadline;
use docent_proto::{Code, MultiOp};
use std::sync::Arc;
use std::time::Duration;

/// Deletes the node at `path` that the transaction `czxid` created, in the node's own session. With the end
/// of that session the node is deleted anyway, and in a later session another client's node may be at the
/// path.
///
/// For the same reason the delete is an exact write, sent only while the node is the same: a late delete
/// could hit the next node at the path (decision 8).
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
        match write.outcome(deadline(Duration::MAX)).await {
            WriteOutcome::Applied(..) | WriteOutcome::Failed(_, Code::NO_NODE) => return,
            WriteOutcome::NotApplied(Cause::Ended(_)) | WriteOutcome::Unknown(Cause::Ended(_)) => return,
            WriteOutcome::Failed(_, code) | WriteOutcome::Refused(code) if is_final(code) => {
                // Event: The servers refuse to delete an ephemeral node. The node remains until its session
                // ends.
                // Action: Give the client DELETE permission on the node's parent.
                tracing::error!(target: "docent::cleanup", client = %generation.client, %path, generation = generation.number, %code, "failed to delete an ephemeral node; the node remains until its session ends");
                return;
            }
            WriteOutcome::NotApplied(Cause::LinkLost) | WriteOutcome::NoMarker => {}
            _ => tokio::time::sleep(PAUSE).await,
        }
    }
}

/// Submits the delete if the node still exists and is the same.
async fn delete_exactly(
    client: &Shared,
    generation: &Arc<SessionGeneration>,
    path: &str,
    czxid: i64,
) -> Result<Option<ExactWrite>, Cause> {
    // Take the marker first: this may require waiting, and the node must be read on the link on which the
    // delete is sent.
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
