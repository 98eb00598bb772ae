use super::claim_all::mark_lost;
use super::request::{Unread, create_proof, set_version};
use super::rivals::Rivals;
use crate::cleanup::{ExactWrite, Near, WriteOutcome};
use crate::client::Client;
use crate::error::{Error, ErrorKind};
use crate::guard::{HoldState, LostReason};
use crate::hold::Hold;
use crate::operation::{Attempts, Idempotency};
use crate::session::{Cause, Lane};
use bytes::Bytes;
use docent_proto::{Code, MultiOp, parent};
use std::sync::Arc;

/// Hands out, in one write, claims that [`claim_all`](crate::recipe::claim_all) created without handing them
/// out. The write creates the proof of each claim, so the number of children that a claimed node ever had is
/// the number of its hand-outs. Claims that turn out to be lost are marked as [lost](crate::Held::lost); the
/// others are handed out.
///
/// # Guarantees
/// After this write, the servers refuse everything that is bound to an earlier claim of the same node.
///
/// # Errors
/// `NoAuth`, `Timeout`, `Closed`, `OutcomeUnknown`. After an error, drop the claims: some may be counted as
/// handed out.
///
/// # Cancel safety
/// This function is *not* cancel safe: the claims may be counted as handed out.
pub async fn hand_out(client: &Client, claims: &[&Hold], operation: &'static str) -> Result<(), Error> {
    let Some(newest) = claims.iter().max_by_key(|claim| claim.state().generation.number) else {
        return Ok(());
    };
    let (generation, path) = (Arc::clone(&newest.state().generation), newest.path());
    for claim in claims.iter().filter(|claim| claim.state().generation.number < generation.number) {
        // The session has ended, which its guards may not have noticed yet.
        claim.state().mark_lost(LostReason::SessionAbandoned);
    }
    let attempts = client.attempts(operation, &path, Idempotency::Idempotent);
    let mut attempts = attempts.bound_to(Some(generation.number));
    let near = Near::Path(&newest.state().node.path);
    loop {
        let Some(marker) = attempts.marker(&attempts.generation().await?, near).await? else { continue };
        let held = claims.iter().map(|claim| claim.state()).filter(|claim| claim.check().is_ok());
        let held: Vec<_> = held.collect();
        if held.is_empty() {
            marker.unused();
            return Ok(());
        }
        held.iter().for_each(|claim| claim.node.handing_out());
        let mut write =
            ExactWrite::submit(marker, held.iter().flat_map(|claim| ops(client, claim)), Lane::Call);
        let rivals = Rivals::submit(client.shared(), &generation, held.iter().map(|claim| &claim.node));
        let cause = match write.outcome(attempts.deadline).await {
            WriteOutcome::Applied(results, stat) => {
                held.iter().for_each(|claim| claim.node.handed_out());
                let rivals = match results {
                    Some(_) => rivals,
                    // The read may have been answered before the write was applied. Without results, the
                    // session has not counted the nodes.
                    None => {
                        let proofs = held.iter().filter_map(|claim| claim.node.proof());
                        proofs.for_each(|proof| generation.session.owns(proof));
                        rivals.without_requests()
                    }
                };
                return match rivals.evict(stat.mzxid, attempts.deadline).await {
                    Ok(superseded) => {
                        mark_lost(held, &superseded);
                        Ok(())
                    }
                    Err(Unread::Refused(code, path)) => {
                        Err(Error::from_code(code, operation).at(&client.shared().namespace.relative(&path)))
                    }
                    Err(Unread::Cause(cause)) => Err(given_up(&attempts, cause)),
                };
            }
            WriteOutcome::Failed(index, Code::NO_NODE | Code::BAD_VERSION) => {
                held[index / OPS].mark_lost(LostReason::NodeDeleted);
                continue;
            }
            WriteOutcome::NoMarker => continue,
            WriteOutcome::Refused(Code::THROTTLED) => Cause::QueueFull,
            WriteOutcome::Failed(index, code) => {
                return Err(refused(client, held[index / OPS], index, code, operation));
            }
            WriteOutcome::Refused(code) => return Err(attempts.code(code)),
            WriteOutcome::NotApplied(cause) => cause,
            WriteOutcome::Unknown(cause) => return Err(given_up(&attempts, cause)),
        };
        // Drop before the pause, because other writes may need the marker.
        drop(write);
        attempts.retry(&generation, false, cause).await?;
    }
}

/// Builds the error of the refused operation with this index, with the path that the operation concerns.
fn refused(client: &Client, claim: &HoldState, index: usize, code: Code, operation: &'static str) -> Error {
    let proof = claim.node.proof().filter(|_| !index.is_multiple_of(OPS));
    let path = proof.and_then(parent).unwrap_or(claim.path());
    Error::from_code(code, operation).at(&client.shared().namespace.relative(path))
}

const OPS: usize = 2;

/// Returns the operations that hand a claim out. Another claim at the path that was handed out has a
/// different version.
fn ops(client: &Client, claim: &HoldState) -> [MultiOp; OPS] {
    let data = Bytes::from(client.shared().identity.clone());
    let proof = claim.node.proof().expect("a claim has the path of a proof");
    [set_version(claim.path(), &data, claim.node.version(true)), create_proof(client.shared(), proof)]
}

fn given_up(attempts: &Attempts<'_>, cause: Cause) -> Error {
    match cause {
        Cause::Deadline => attempts.timeout(),
        _ => attempts.error(ErrorKind::OutcomeUnknown),
    }
}
