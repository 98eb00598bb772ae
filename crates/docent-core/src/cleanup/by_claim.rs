//! Deletes of claims, whose paths other clients use once the claim is deleted.

use super::by_czxid::delete_by_czxid;
use super::by_name::{delete_owned, generation_after, is_final};
use super::{DeleteOutcome, OwnedNode};
use crate::guard::SessionGeneration;
use crate::operation::Shared;
use crate::session::{Cause, Lane, Outcome, Pending, SessionEnd};
use docent_proto::{Code, MultiResult, Request, Response};
use std::sync::Arc;

/// Returns the request that deletes a claim. A repeated or late request does no harm: after the proof is
/// deleted, the servers refuse it.
pub(super) fn delete_request(node: &OwnedNode) -> Request {
    Request::Multi(node.deletes().collect())
}

/// Reply to the request that deletes a claim.
pub(super) enum ClaimDeletion {
    /// Claim and proof are deleted.
    Deleted,
    /// The node at the path is not the claim's.
    NotTheNode,
    /// The proof is deleted.
    NoProof,
    /// The proof cannot be deleted.
    ProofRefused(Code),
    Refused(Code),
    /// There is no reply, for this cause.
    Unanswered(Cause),
}

/// Determines from `outcome` whether a claim is deleted.
pub(super) fn deleted(outcome: &Outcome) -> ClaimDeletion {
    let reply = match outcome {
        Outcome::Reply(reply) => reply,
        Outcome::NotSent(cause) | Outcome::Unknown(cause) => return ClaimDeletion::Unanswered(*cause),
    };
    let failure = match &reply.result {
        Ok(Response::Multi(results)) => MultiResult::first_failure(results),
        Ok(_) => return ClaimDeletion::Unanswered(Cause::QueueFull),
        Err(Code::SESSION_EXPIRED) => return ClaimDeletion::Unanswered(Cause::Ended(SessionEnd::Expired)),
        Err(code) => return ClaimDeletion::Refused(*code),
    };
    match failure {
        None => ClaimDeletion::Deleted,
        Some((0, Code::NO_NODE | Code::BAD_VERSION)) => ClaimDeletion::NotTheNode,
        Some((_, Code::NO_NODE)) => ClaimDeletion::NoProof,
        Some((0, code)) => ClaimDeletion::Refused(code),
        Some((_, code)) => ClaimDeletion::ProofRefused(code),
    }
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
        let cause = match deleted(&reply.await) {
            ClaimDeletion::Deleted => return DeleteOutcome::Deleted,
            ClaimDeletion::NotTheNode | ClaimDeletion::NoProof => {
                delete_node_alone(client, node, &generation).await;
                return delete_proof(client, node, generation).await;
            }
            ClaimDeletion::ProofRefused(code) if is_final(code) => {
                // Event: The servers refuse to delete the proof node of a claim. The node remains until its
                // session ends, and the next claim of the same item may fail until then.
                // Action: Give the client DELETE permission on the item's node.
                tracing::error!(target: "docent::cleanup", client = %client.label, path = node.proof(), generation = generation.number, %code, "failed to delete the proof of a claim; the node remains until its session ends");
                delete_node_alone(client, node, &generation).await;
                return DeleteOutcome::Refused(code);
            }
            ClaimDeletion::Refused(code) if is_final(code) => {
                // Event: The servers refuse to delete the node of a claim. The item stays claimed until the
                // session ends.
                // Action: Give the client DELETE permission on the folder of the claims.
                tracing::error!(target: "docent::cleanup", client = %client.label, path = %node.path, generation = generation.number, %code, "failed to delete a claim; the node remains until its session ends");
                return DeleteOutcome::Refused(code);
            }
            ClaimDeletion::Refused(_) | ClaimDeletion::ProofRefused(_) => Cause::QueueFull,
            ClaimDeletion::Unanswered(cause) => cause,
        };
        match generation_after(client, owner, &generation, cause).await {
            Some(next) if next.number == owner || node.possible_proof().is_some() => generation = next,
            None if client.closing.is_cancelled() => return DeleteOutcome::Closed,
            _ => return DeleteOutcome::Deleted,
        }
        reply = submit(&generation, delete_request(node));
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
