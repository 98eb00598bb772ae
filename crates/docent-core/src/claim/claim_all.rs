use super::request::{ClaimRequest, Reads, Unread, claim_of};
use super::rivals::Rivals;
use crate::cleanup::{CreatedNodes, Deletion, ExactWrite, Marker, Near, NewClaim, OwnedNode, WriteOutcome};
use crate::client::{Client, Recipe, RecipeKind};
use crate::error::{Error, ErrorKind};
use crate::guard::{Beginning, HoldState, LostReason, SessionGeneration, UnderWay};
use crate::hold::{Hold, Role};
use crate::node::Node;
use crate::operation::{Attempts, Idempotency};
use crate::session::{Cause, Lane};
use crate::time::Timestamp;
use docent_proto::Code;
use futures_util::future::join_all;
use std::convert::Infallible;
use std::future::pending;
use std::sync::Arc;
use tokio::time::{Instant, timeout_at};

/// Result of an attempt to claim.
#[derive(Debug)]
pub enum ClaimResult {
    /// All claims succeeded. They are in the order of the requests, each with its node as read after the
    /// claim; `None` if the node was deleted since.
    All(Vec<(Hold, Option<Node>)>),
    /// Nothing was claimed: another client holds the claim with this index.
    Taken(usize),
    /// Nothing was claimed: the claim with this index has no parent.
    NoParent(usize),
    /// Nothing was claimed: the node of the claim with this index does not exist.
    NoNode(usize),
}

/// Claims in flight. If the intent is dropped, the claims are deleted as soon as the outcome is known.
struct Intent {
    generation: Arc<SessionGeneration>,
    claims: Vec<NewClaim>,
    /// The exact write; `None` when nothing is left to undo.
    write: Option<ExactWrite>,
    submitted: Timestamp,
    /// Number of lost links when the write was submitted.
    losses: u64,
}

impl Intent {
    fn submit(
        client: &Client,
        marker: Marker,
        generation: &Arc<SessionGeneration>,
        wanted: &[ClaimRequest],
    ) -> Self {
        let losses = generation.losses();
        // Generated for each attempt: late or repeated requests of an earlier attempt then concern other
        // nodes.
        let id = generation.fresh_id();
        let ops = wanted.iter().flat_map(|wanted| wanted.ops(client.shared(), id));
        debug_assert_eq!(ops.clone().count(), wanted.iter().map(ClaimRequest::op_count).sum::<usize>());
        let write = ExactWrite::submit(marker, ops, Lane::Claim);
        let submitted = generation.clock.now();
        let claims = wanted.iter().map(|wanted| wanted.claim(id)).collect();
        Self { generation: Arc::clone(generation), claims, write: Some(write), submitted, losses }
    }

    /// The nodes that the transaction `czxid` created.
    fn take_created(&mut self, czxid: i64) -> Vec<Arc<OwnedNode>> {
        let claims = std::mem::take(&mut self.claims).into_iter();
        let created = |claim| Arc::new(OwnedNode::claim(Arc::clone(&self.generation), claim, czxid));
        claims.map(created).collect()
    }

    /// Deletes the nodes that the transaction `czxid` created.
    fn undo(mut self, czxid: i64) {
        self.take_created(czxid).into_iter().for_each(give_back);
    }
}

impl Drop for Intent {
    fn drop(&mut self) {
        if let Some(mut write) = self.write.take()
            && !write.withdraw()
        {
            let created = CreatedNodes::Claims(std::mem::take(&mut self.claims));
            self.generation.cleanup.undo_exact(&self.generation, write, created);
        }
    }
}

/// Result of one attempt.
enum Attempt {
    /// Created by the transaction with this number; `replied` is false if the reply was lost.
    Created {
        czxid: i64,
        replied: bool,
    },
    Refused(usize, Code),
    Retry,
}

/// Claims all of `wanted` in one write, all or nothing, and reads the claimed nodes in the same round trip.
/// Errors name `operation`, the method of the recipe.
///
/// A claim is an exclusive [`Hold`] by an ephemeral node at a fixed path, which other clients use before and
/// afterwards. A recipe may create claims before its user wants them. A claim is *handed out* before the user
/// gets it, with this write or by [`hand_out`](super::hand_out). The claim then gets a second node: its
/// proof, a child of the claimed node with a name that is used once.
///
/// # Examples
/// ```no_run
/// use docent_core::recipe::{ClaimRequest, ClaimResult, Hold, RecipeKind, claim_all};
/// use docent_core::{Client, Error};
///
/// static SLOT: RecipeKind = RecipeKind::new("slot", "claim");
///
/// /// Claims the slot `name`, unless another client has it.
/// async fn claim(client: &Client, name: &str) -> Result<Option<Hold>, Error> {
///     let node = format!("/slots/{name}");
///     let claim = format!("{node}/claim");
///     let request = ClaimRequest { claim, node, handed_out: true, beside_curator: false };
///     match claim_all(client, &[request], &SLOT, "claim").await? {
///         ClaimResult::All(mut claims) => Ok(claims.pop().map(|(hold, _slot)| hold)),
///         ClaimResult::Taken(_) | ClaimResult::NoParent(_) | ClaimResult::NoNode(_) => Ok(None),
///     }
/// }
/// ```
///
/// # Guarantees
/// A claim succeeds only if its node is proven to belong to this client: by the reply, or after a lost reply
/// by the id in the data of the write's marker, in the same session.
///
/// When the next claim of the same node is handed out, the servers refuse everything that is bound to an
/// earlier claim that was handed out, including its end. This is true even if another client deleted the
/// earlier claim's node and the holder's process has not learned of it yet.
///
/// # Errors
/// `ShortLease` if the session timeout is below four ticks of the server, `NoAuth`, `TooLarge`, `Timeout`,
/// `Closed`; `InvalidInput` if `wanted` is empty or a path breaks a rule.
///
/// # Cancel safety
/// This function is cancel safe: the claims are deleted, even if the reply is lost.
pub async fn claim_all(
    client: &Client,
    wanted: &[ClaimRequest],
    kind: &'static RecipeKind,
    operation: &'static str,
) -> Result<ClaimResult, Error> {
    let Some(first) = wanted.first() else {
        return Err(Error::invalid_input(operation, "batch size 0 must be at least 1"));
    };
    let full = wanted.iter().map(|request| request.full(client, operation)).collect::<Result<Vec<_>, _>>()?;
    // An exact write is sent again only when the earlier one can certainly never be applied. A write of
    // unknown outcome is undone (decision 11).
    let mut attempts = client.attempts(operation, &first.claim, Idempotency::Idempotent);
    let place = client.shared().namespace.join(&first.claim);
    let recipe = client.shared().recipe(kind);
    loop {
        let generation = attempts.generation().await?;
        let Some(marker) = attempts.marker(&generation, Near::Path(&place)).await? else { continue };
        // The shutdown checks for writes in flight after its stage has begun; this code checks the stage
        // after it counted the write.
        let mut under_way = Some(generation.held.begin_write(recipe.kind.stage));
        // The session is attached now, so its timeout is known. A claim that is refused later would be
        // counted anyway.
        if client.shared().refuses(recipe.kind.stage) {
            return Err(attempts.error(client.shared().closed()));
        }
        refuse_short_lease(client, &generation, &attempts)?;
        let mut intent = Intent::submit(client, marker, &generation, &full);
        let losses = intent.losses;
        let reads = Reads::submit(client.shared(), &generation, &full);
        let ended = tokio::select! {
            biased;
            ended = created(&mut intent, &mut attempts, &generation) => ended?,
            never = until_link_lost(&generation, losses, &mut under_way) => match never {},
        };
        match ended {
            Attempt::Created { czxid, replied } => {
                // The session may have been resumed with a shorter timeout in the meantime.
                if let Err(error) = refuse_short_lease(client, &generation, &attempts) {
                    intent.undo(czxid);
                    return Err(error);
                }
                let handed_out: Vec<_> = intent.claims.iter().map(|claim| claim.handed_out).collect();
                let held = hold(client, intent, wanted, czxid, &recipe);
                drop(under_way);
                // If the write got no reply, the reads may have been answered before the write was applied.
                let reads = match replied {
                    true => reads,
                    false => Reads::submit(client.shared(), &generation, &full),
                };
                let mut read = reads.all(attempts.deadline).await;
                if let (Some(held), Ok(nodes)) = (&held, &read) {
                    let crowded: Vec<_> =
                        crowded(&handed_out, nodes, czxid).map(|claim| held[claim].state()).collect();
                    let rivals = Rivals::of(&generation, crowded.iter().map(|claim| &claim.node));
                    match rivals.evict(czxid, attempts.deadline).await {
                        Ok(superseded) => mark_lost(crowded, &superseded),
                        Err(unread) => read = Err(unread),
                    }
                }
                match (held, read) {
                    (Some(held), Ok(read)) => {
                        return Ok(ClaimResult::All(held.into_iter().zip(read).collect()));
                    }
                    (held, Err(Unread::Refused(code, path))) => {
                        // Release the claims, so that the next attempt does not find them taken. If a release
                        // is dropped at the deadline, the claims are deleted as well.
                        let released = join_all(held.into_iter().flatten().map(Hold::release));
                        let _ = Box::pin(timeout_at(attempts.deadline, released)).await;
                        let path = client.shared().namespace.relative(&path);
                        return Err(Error::from_code(code, operation).at(&path).needing("READ"));
                    }
                    // The lease ran out before the reply arrived, or the link was lost before the reads were
                    // answered. The claims are deleted and created again.
                    _ if Instant::now() >= attempts.deadline => return Err(attempts.timeout()),
                    (_, Err(Unread::Cause(cause))) => attempts.retry(&generation, false, cause).await?,
                    (None, _) => attempts.retry(&generation, false, Cause::LinkLost).await?,
                }
            }
            Attempt::Refused(op, code) => return refused(wanted, claim_of(&full, op), code, operation),
            Attempt::Retry => {}
        }
    }
}

fn refuse_short_lease(
    client: &Client,
    generation: &SessionGeneration,
    attempts: &Attempts<'_>,
) -> Result<(), Error> {
    match generation.refuses_guards(client.shared().config.accept_short_lease) {
        Some(detail) => Err(attempts.error(ErrorKind::ShortLease).because(detail)),
        None => Ok(()),
    }
}

/// Returns the claims that are `handed_out` and whose nodes have additional children, or changed children
/// since the transaction `czxid` created the claims.
fn crowded(handed_out: &[bool], nodes: &[Option<Node>], czxid: i64) -> impl Iterator<Item = usize> {
    let is_crowded = move |node: &Node| node.stat.num_children > 1 || node.stat.pzxid != czxid;
    let claims = handed_out.iter().zip(nodes).enumerate();
    claims.filter_map(move |(claim, (handed_out, node))| {
        (*handed_out && node.as_ref().is_some_and(is_crowded)).then_some(claim)
    })
}

/// Marks the claims whose nodes are `superseded` as lost.
pub(super) fn mark_lost<'a>(
    claims: impl IntoIterator<Item = &'a Arc<HoldState>>,
    superseded: &[Arc<OwnedNode>],
) {
    let is_superseded = |claim: &HoldState| superseded.iter().any(|node| Arc::ptr_eq(node, &claim.node));
    for claim in claims.into_iter().filter(|claim| is_superseded(claim)) {
        claim.mark_lost(LostReason::NodeDeleted);
    }
}

/// Returns the result of claims one of which was refused.
fn refused(
    wanted: &[ClaimRequest],
    (index, creates_claim): (usize, bool),
    code: Code,
    operation: &'static str,
) -> Result<ClaimResult, Error> {
    match code {
        Code::NODE_EXISTS if creates_claim => Ok(ClaimResult::Taken(index)),
        Code::NO_NODE if creates_claim => Ok(ClaimResult::NoParent(index)),
        Code::NO_NODE => Ok(ClaimResult::NoNode(index)),
        code => {
            let request = &wanted[index];
            Err(match creates_claim {
                true => Error::from_code(code, operation).at(&request.claim).needing("CREATE on the parent"),
                false => Error::from_code(code, operation).at(&request.node),
            })
        }
    }
}

/// Counts a write as in flight for the client's shutdown while the link it was sent on lasts: in an outage,
/// the shutdown would not learn the outcome in time. Never resolves.
async fn until_link_lost(
    generation: &SessionGeneration,
    losses: u64,
    under_way: &mut Option<UnderWay<'_>>,
) -> Infallible {
    let mut link = generation.session.link();
    let _ = link.wait_for(|link| !link.up || link.losses != losses).await;
    *under_way = None;
    pending().await
}

async fn created(
    intent: &mut Intent,
    attempts: &mut Attempts<'_>,
    generation: &Arc<SessionGeneration>,
) -> Result<Attempt, Error> {
    let Some(write) = &mut intent.write else { return Ok(Attempt::Retry) };
    let ended = write.outcome(attempts.deadline).await;
    // A write of uncertain outcome is undone by the drop of the intent.
    if !matches!(ended, WriteOutcome::Unknown(_)) {
        intent.write = None;
    }
    let cause = match ended {
        WriteOutcome::Applied(results, stat) => {
            if results.is_none() {
                // Without results, the session has not counted the nodes.
                for NewClaim { path, proof, handed_out, .. } in &intent.claims {
                    generation.session.owns(path);
                    handed_out.then(|| generation.session.owns(proof));
                }
            }
            return Ok(Attempt::Created { czxid: stat.mzxid, replied: results.is_some() });
        }
        WriteOutcome::Failed(index, code) => return Ok(Attempt::Refused(index, code)),
        WriteOutcome::NotApplied(Cause::LinkLost) if planted!(NoNodeIsClaim) => {
            return Ok(Attempt::Created { czxid: generation.session.last_zxid(), replied: true });
        }
        WriteOutcome::NoMarker => return Ok(Attempt::Retry),
        WriteOutcome::Refused(Code::THROTTLED) => Cause::QueueFull,
        WriteOutcome::Refused(code) => return Ok(Attempt::Refused(0, code)),
        WriteOutcome::NotApplied(cause) | WriteOutcome::Unknown(cause) => cause,
    };
    attempts.retry(generation, false, cause).await?;
    Ok(Attempt::Retry)
}

/// Turns the claims into guards. Returns `None` if the lease has run out: all claims are then deleted.
fn hold(
    client: &Client,
    mut intent: Intent,
    wanted: &[ClaimRequest],
    czxid: i64,
    recipe: &Recipe,
) -> Option<Vec<Hold>> {
    // From here on, dropping a guard deletes its node; the intent no longer does.
    let nodes = intent.take_created(czxid);
    let generation = &intent.generation;
    let claims = nodes.into_iter().zip(wanted).map(|(node, wanted)| {
        let state = generation.hold(&node, recipe, Beginning::at_creation(), None);
        if state.is_none() {
            give_back(node);
        }
        Some(Hold::new(client.clone(), wanted.claim.clone(), Role::Exclusive, state?))
    });
    // Collect twice: the first pass turns every claim into a guard or gives its node back, even after a
    // failed claim.
    let claims: Vec<Option<Hold>> = claims.collect();
    for _ in claims.iter().flatten() {
        recipe.metrics.acquired(generation.clock.now().since(intent.submitted));
    }
    claims.into_iter().collect()
}

/// Deletes the node of a claim that belongs to no hold.
fn give_back(node: Arc<OwnedNode>) {
    if node.begin_deletion() {
        drop(Deletion::new(node));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;

    #[test]
    fn a_claim_is_checked_if_the_children_of_its_node_changed_since_its_creation() {
        const CREATED: i64 = 7;
        let is_crowded = |handed_out, num_children, pzxid| {
            let stat = docent_proto::Stat { num_children, pzxid, ..Default::default() };
            let node = Node { data: Bytes::new(), stat: stat.into() };
            crowded(&[handed_out], &[Some(node)], CREATED).next().is_some()
        };
        assert!(!is_crowded(true, 1, CREATED));
        assert!(is_crowded(true, 2, CREATED), "has a child of an earlier claim");
        assert!(is_crowded(true, 1, 9), "a later claim deleted this proof");
        assert!(!is_crowded(false, 2, 9), "the claim has no proof yet");
    }
}
