//! Deletes of nodes at paths that others may use once they are gone, each in its own session.

use super::by_name::is_final;
use super::{DeleteOutcome, Ended, ExactWrite, Marker, NoMarker, OwnedNode, PAUSE};
use crate::session::{Cause, Lane, SessionEnd, lookup};
use crate::setup::Setup;
use crate::time::deadline;
use docent_proto::{Code, MultiOp};
use std::time::Duration;

/// Deletes the node of a claim, in its own session: with that it would go anyway, and in a later one the path
/// may hold somebody else's claim. For the same reason the delete is an exact write, sent only while the node
/// is the same: a delete that is applied late could hit the next claim's node (decision 8).
pub(super) async fn delete_by_czxid(
    setup: &Setup,
    node: &OwnedNode,
    first: Option<ExactWrite>,
) -> DeleteOutcome {
    let mut write = first;
    loop {
        let mut sent = match write.take() {
            Some(sent) => sent,
            None => match send_again(setup, node).await {
                Ok(sent) => sent,
                Err(Some(left)) => return left,
                Err(None) => {
                    tokio::time::sleep(PAUSE).await;
                    continue;
                }
            },
        };
        let refusal = match sent.ended(deadline(Duration::MAX)).await {
            Ended::Applied(..) => return DeleteOutcome::Gone,
            Ended::Failed(_, code) | Ended::Refused(code) => code,
            Ended::NotApplied(Cause::Ended(end)) | Ended::Unknown(Cause::Ended(end)) => return ended(end),
            Ended::NotApplied(Cause::LinkLost) | Ended::NoMarker => continue,
            Ended::NotApplied(_) | Ended::Unknown(_) => Code::THROTTLED,
        };
        match refusal {
            Code::NO_NODE => return DeleteOutcome::Gone,
            code if is_final(code) => {
                tracing::error!(path = %node.path, generation = node.context.number, %code, "a claim could not be deleted");
                return DeleteOutcome::Refused(code);
            }
            _ => tokio::time::sleep(PAUSE).await,
        }
    }
}

/// Submits the delete if the node is still there and the same. Else the error is the end of the node, or
/// `None` if that is not known now.
async fn send_again(setup: &Setup, node: &OwnedNode) -> Result<ExactWrite, Option<DeleteOutcome>> {
    // The marker first: it may take a wait, and the look must be made on the link that the delete is sent on.
    let marker = match Marker::take(setup, &node.context, deadline(Duration::MAX)).await {
        Ok(marker) => marker,
        Err(NoMarker::Cause(Cause::Ended(end))) => return Err(Some(ended(end))),
        Err(_) => return Err(None),
    };
    let losses = node.context.losses();
    let left = match lookup::stat(&node.context, &node.path).await {
        Ok(Some(stat)) if stat.czxid == node.czxid || planted!(ClaimUnchecked) => {
            return Ok(delete_exactly(node, marker, losses));
        }
        Ok(_) => Some(DeleteOutcome::Gone),
        Err(Cause::Ended(end)) => Some(ended(end)),
        Err(_) => None,
    };
    marker.unused();
    Err(left)
}

/// Submits the delete of the node of a claim, which was the same after the link had been lost `losses` times.
pub(super) fn delete_exactly(node: &OwnedNode, marker: Marker, losses: u64) -> ExactWrite {
    let delete = MultiOp::Delete { path: node.path.clone(), version: -1 };
    ExactWrite::submit_on(Some(losses), marker, [delete], Lane::Cleanup)
}

/// Outcome for the node of a claim whose session has ended.
fn ended(end: SessionEnd) -> DeleteOutcome {
    match end {
        SessionEnd::Closed => DeleteOutcome::Closed,
        // It goes with its session, or went.
        _ => DeleteOutcome::Gone,
    }
}
