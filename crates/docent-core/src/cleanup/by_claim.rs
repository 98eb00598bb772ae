//! Deletes of claims, whose paths other clients use once the claim is deleted.

use super::by_czxid::delete_by_czxid;
use super::by_name::{after, delete_owned, is_final};
use super::{DeleteOutcome, OwnedNode};
use crate::guard::SessionGeneration;
use crate::operation::Shared;
use crate::session::{Cause, Lane, Outcome, Pending, SessionEnd};
use docent_proto::{Code, MultiResult, Request, Response};
use std::sync::Arc;

/// The request that deletes a claim. Repeated or applied late, it does no harm: once the proof is deleted the
/// servers refuse it.
pub(super) fn delete_request(node: &OwnedNode) -> Request {
    Request::Multi(node.deletes().collect())
}

/// Reply to the request that deletes a claim.
pub(super) enum Deleted {
    /// Claim and proof are deleted.
    Gone,
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

/// Reads from `outcome` whether a claim is deleted.
pub(super) fn deleted(outcome: &Outcome) -> Deleted {
    let reply = match outcome {
        Outcome::Reply(reply) => reply,
        Outcome::NotSent(cause) | Outcome::Unknown(cause) => return Deleted::Unanswered(*cause),
    };
    let failure = match &reply.result {
        Ok(Response::Multi(results)) => MultiResult::first_failure(results),
        Ok(_) => return Deleted::Unanswered(Cause::QueueFull),
        Err(Code::SESSION_EXPIRED) => return Deleted::Unanswered(Cause::Ended(SessionEnd::Expired)),
        Err(code) => return Deleted::Refused(*code),
    };
    match failure {
        None => Deleted::Gone,
        Some((0, Code::NO_NODE | Code::BAD_VERSION)) => Deleted::NotTheNode,
        Some((_, Code::NO_NODE)) => Deleted::NoProof,
        Some((0, code)) => Deleted::Refused(code),
        Some((_, code)) => Deleted::ProofRefused(code),
    }
}

/// Deletes the node of a claim and its proof; `sent` is the request that is under way.
///
/// A claim without a proof is deleted in its own session only: in a later one the node may be that of another
/// claim.
pub(super) async fn delete_claim(client: &Shared, node: &OwnedNode, sent: Option<Pending>) -> DeleteOutcome {
    let owner = node.generation.number;
    let mut generation = Arc::clone(&node.generation);
    let mut reply = sent.unwrap_or_else(|| submit(&generation, delete_request(node)));
    loop {
        let cause = match deleted(&reply.await) {
            Deleted::Gone => return DeleteOutcome::Gone,
            Deleted::NotTheNode | Deleted::NoProof => {
                delete_node_alone(client, node, &generation).await;
                return delete_proof(client, node, generation).await;
            }
            Deleted::ProofRefused(code) if is_final(code) => {
                tracing::error!(path = node.proof(), generation = generation.number, %code, "failed to delete the proof of a claim; it remains until its session ends");
                delete_node_alone(client, node, &generation).await;
                return DeleteOutcome::Refused(code);
            }
            Deleted::Refused(code) if is_final(code) => {
                tracing::error!(path = %node.path, generation = generation.number, %code, "failed to delete a claim; it remains until its session ends");
                return DeleteOutcome::Refused(code);
            }
            Deleted::Refused(_) | Deleted::ProofRefused(_) => Cause::QueueFull,
            Deleted::Unanswered(cause) => cause,
        };
        match after(client, owner, &generation, cause).await {
            Some(next) if next.number == owner || node.possible_proof().is_some() => generation = next,
            None if client.closing.is_cancelled() => return DeleteOutcome::Closed,
            _ => return DeleteOutcome::Gone,
        }
        reply = submit(&generation, delete_request(node));
    }
}

/// Deletes the node of the claim without its proof, if it is still the claim's: the proof was deleted by
/// another client or cannot be deleted, or the claim was not handed out after all. In a later session nothing
/// is left to do: the node went with its own.
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
        None => DeleteOutcome::Gone,
    }
}

fn submit(generation: &SessionGeneration, request: Request) -> Pending {
    generation.session.submit(request, Lane::Cleanup)
}
