//! Deletes of nodes whose paths other clients may use after the deletion, each in its own session.

use super::by_name::{delete_owned, generation_after, is_final};
use super::{DeleteOutcome, ExactWrite, Marker, Near, NoOwnNode, OwnedNode, PAUSE, WriteOutcome};
use crate::guard::SessionGeneration;
use crate::operation::Shared;
use crate::session::lookup::{self, Watched};
use crate::session::{Cause, Lane, Pending};
use crate::time::deadline;
use docent_proto::{Code, MultiOp, MultiResult, Request, Response};
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
        // The deletion makes the watch fire. If the watch were dropped before, it would have to be removed.
        let (mut write, _watched) = match delete_exactly(client, generation, path, czxid).await {
            Ok(Some(submitted)) => submitted,
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

/// Submits the delete if the node still exists and is the same, and returns it with the watch that it depends
/// on.
async fn delete_exactly(
    client: &Shared,
    generation: &Arc<SessionGeneration>,
    path: &str,
    czxid: i64,
) -> Result<Option<(ExactWrite, Watched)>, Cause> {
    // Take the marker first: this may require waiting, and the node must be read on the link on which the
    // delete is sent.
    let marker = match Marker::take(client, generation, Near::Path(path), deadline(Duration::MAX)).await {
        Ok(marker) => marker,
        Err(NoOwnNode::Cause(cause)) => return Err(cause),
        Err(NoOwnNode::Refused(_)) => return Err(Cause::QueueFull),
    };
    match lookup::watched(generation, path).await {
        Ok(Some(found)) if found.stat.czxid == czxid => {
            // If the node's data is set meanwhile, the delete is refused, and the node is read again.
            let delete = MultiOp::Delete { path: path.to_owned(), version: found.stat.version };
            Ok(Some((ExactWrite::submit_on(found.since(), marker, delete, Lane::Cleanup), found)))
        }
        looked => {
            marker.unused();
            looked.map(|_| None)
        }
    }
}

// Deletes of claims, whose paths other clients use once the claim is deleted.

/// Returns the request that deletes a claim. A repeated or late request does no harm: after the proof is
/// deleted, the servers refuse it.
pub(super) fn delete_request(node: &OwnedNode) -> Request {
    Request::Multi(node.deletes().collect())
}

/// Deletes the node of a claim and its proof; `sent` is the request that is in flight.
///
/// A claim without a proof is deleted only in its own session: in a later session the node may belong to
/// another claim.
pub(super) async fn delete_claim(client: &Shared, node: &OwnedNode, sent: Option<Pending>) -> DeleteOutcome {
    let owner = node.generation.number;
    let mut generation = Arc::clone(&node.generation);
    let mut reply = sent.unwrap_or_else(|| submit(&generation, delete_request(node)));
    loop {
        let cause = match reply.await.answer() {
            Ok(answer) => match failure(&answer.result) {
                None => return DeleteOutcome::Deleted,
                // The node at the path is not the claim's, or the proof is deleted.
                Some((0, Code::NO_NODE | Code::BAD_VERSION) | (1.., Code::NO_NODE)) => {
                    delete_node_alone(client, node, &generation).await;
                    return delete_proof(client, node, generation).await;
                }
                Some((0, code)) if is_final(code) => {
                    // Event: The servers refuse to delete the node of a claim. The item stays claimed until
                    // the session ends.
                    // Action: Give the client DELETE permission on the folder of the claims.
                    tracing::error!(target: "docent::cleanup", client = %client.label, path = %node.path, generation = generation.number, %code, "failed to delete a claim; the node remains until its session ends");
                    return DeleteOutcome::Refused(code);
                }
                Some((_, code)) if is_final(code) => {
                    // Event: The servers refuse to delete the proof node of a claim. The node remains until
                    // its session ends, and the next claim of the same item may fail until then.
                    // Action: Give the client DELETE permission on the item's node.
                    tracing::error!(target: "docent::cleanup", client = %client.label, path = node.proof(), generation = generation.number, %code, "failed to delete the proof of a claim; the node remains until its session ends");
                    delete_node_alone(client, node, &generation).await;
                    return DeleteOutcome::Refused(code);
                }
                Some(_) => Cause::QueueFull,
            },
            Err(cause) => cause,
        };
        match generation_after(client, owner, &generation, cause).await {
            Some(next) if next.number == owner || node.possible_proof().is_some() => generation = next,
            None if client.closing.is_cancelled() => return DeleteOutcome::Closed,
            _ => return DeleteOutcome::Deleted,
        }
        reply = submit(&generation, delete_request(node));
    }
}

/// Returns the refused operation of a claim's deletion, with its index: 0 for the node, otherwise the proof.
fn failure(result: &Result<Response, Code>) -> Option<(usize, Code)> {
    match result {
        Ok(Response::Multi(results)) => MultiResult::first_failure(results),
        Ok(_) => Some((0, Code::MARSHALLING_ERROR)),
        Err(code) => Some((0, *code)),
    }
}

/// Deletes the node of the claim without its proof, if the node still belongs to the claim. This is needed if
/// another client deleted the proof, if the proof cannot be deleted, or if the claim was not handed out. In a
/// later session nothing is left to do, because the node was deleted with its session.
async fn delete_node_alone(client: &Shared, node: &OwnedNode, generation: &SessionGeneration) {
    if generation.number == node.generation.number {
        delete_by_czxid(client, &node.generation, &node.path, node.czxid).await;
    }
}

/// Deletes the proof of a claim whose node is deleted.
async fn delete_proof(
    client: &Shared,
    node: &OwnedNode,
    generation: Arc<SessionGeneration>,
) -> DeleteOutcome {
    match node.possible_proof() {
        Some(proof) => delete_owned(client, node.generation.number, generation, proof.to_owned(), None).await,
        None => DeleteOutcome::Deleted,
    }
}

fn submit(generation: &SessionGeneration, request: Request) -> Pending {
    generation.session.submit(request, Lane::Cleanup)
}
