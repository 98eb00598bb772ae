use super::reads::{Reads, Unread};
use crate::cleanup::{Deletion, Ended, ExactWrite, Made, Marker, OwnedNode};
use crate::client::Client;
use crate::error::{Error, ErrorKind};
use crate::guard::{Beginning, Role, SessionGeneration, UnderWay};
use crate::hold::Hold;
use crate::node::Node;
use crate::operation::{Attempts, Idempotency};
use crate::session::{Cause, Lane};
use crate::setup::Stage;
use crate::telemetry;
use crate::time::Timestamp;
use bytes::Bytes;
use docent_proto::{Code, Create, CreateMode, MultiOp};
use futures_util::future::join_all;
use std::convert::Infallible;
use std::future::pending;
use std::sync::Arc;
use tokio::time::{Instant, timeout_at};

/// Claim to make, with the node it is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClaimRequest {
    /// The path of the claim: an ephemeral node whose parent exists.
    pub claim: String,
    /// The path of the node that it is a claim of, which is read in the same trip.
    pub node: String,
    /// The path of a child of `node` that is made and deleted in the same write: so the servers count the
    /// claim among the children that the node ever had. `None` for a claim that is not counted.
    pub counter: Option<String>,
}

/// Result of an attempt to claim.
#[derive(Debug)]
pub enum ClaimResult {
    /// All are ours, in the order of the `ClaimRequest`, each with its node as it was read after the claim;
    /// `None` when it was deleted since.
    All(Vec<(Hold, Option<Node>)>),
    /// Nothing was claimed: the claim with this index is somebody else's.
    Taken(usize),
    /// Nothing was claimed: the claim with this index has no parent.
    NoParent(usize),
    /// Nothing was claimed: the node of the claim with this index is gone.
    NoNode(usize),
}

/// Claim to make, with full paths.
pub(super) struct Wanted {
    claim: String,
    pub(super) node: String,
    counter: Option<String>,
}

impl Wanted {
    /// A claim that is not counted of the node at a full path.
    #[cfg(test)]
    pub(super) fn of(node: &str) -> Self {
        Self { claim: format!("{node}/claim"), node: node.to_owned(), counter: None }
    }

    fn new(client: &Client, request: &ClaimRequest, operation: &'static str) -> Result<Self, Error> {
        let full = |path: &String| client.shared().namespace.full(operation, path);
        Ok(Self {
            claim: full(&request.claim)?,
            node: full(&request.node)?,
            counter: request.counter.as_ref().map(full).transpose()?,
        })
    }

    /// Operations of the write, the create of the claim first: a claim of another is told from a node that
    /// is gone.
    fn ops(&self, client: &Client) -> Vec<MultiOp> {
        let shared = client.shared();
        let create = |path: &String, data: Bytes, mode| {
            MultiOp::Create(Create::new(path.clone(), data, shared.acl(path), mode, 0))
        };
        let claim = create(&self.claim, shared.identity.clone().into(), CreateMode::Ephemeral);
        match &self.counter {
            Some(counter) => {
                let count = create(counter, Bytes::new(), CreateMode::Persistent);
                vec![claim, count, MultiOp::Delete { path: counter.clone(), version: -1 }]
            }
            None => vec![claim, MultiOp::Check { path: self.node.clone(), version: -1 }],
        }
    }
}

/// The claim that the operation with this index is about, and whether the operation makes it.
fn claim_of(wanted: &[Wanted], mut op: usize) -> (usize, bool) {
    for (index, wanted) in wanted.iter().enumerate() {
        let ops = if wanted.counter.is_some() { 3 } else { 2 };
        if op < ops {
            return (index, op == 0);
        }
        op -= ops;
    }
    (0, true)
}

/// Claims on their way. If it is dropped they are deleted as soon as their fate is known.
struct Intent {
    generation: Arc<SessionGeneration>,
    paths: Vec<String>,
    /// The exact write; `None` once nothing is left to undo.
    write: Option<ExactWrite>,
    submitted: Timestamp,
    /// Number of lost links at that time.
    losses: u64,
}

impl Intent {
    fn submit(
        client: &Client,
        marker: Marker,
        generation: &Arc<SessionGeneration>,
        wanted: &[Wanted],
    ) -> Self {
        let losses = generation.losses();
        let ops = wanted.iter().flat_map(|wanted| wanted.ops(client));
        let write = ExactWrite::submit(marker, ops, Lane::Call);
        let submitted = generation.clock.now();
        let paths = wanted.iter().map(|wanted| wanted.claim.clone()).collect();
        Self { generation: Arc::clone(generation), paths, write: Some(write), submitted, losses }
    }

    fn take_paths(&mut self) -> Vec<String> {
        std::mem::take(&mut self.paths)
    }

    /// Deletes the nodes that the transaction `czxid` made.
    fn undo(mut self, czxid: i64) {
        for path in self.take_paths() {
            let node =
                OwnedNode::by_czxid(Arc::clone(&self.generation), path, czxid).confirmed_at(self.losses);
            give_back(Arc::new(node));
        }
    }
}

impl Drop for Intent {
    fn drop(&mut self) {
        if let Some(mut write) = self.write.take()
            && !write.take_back()
        {
            let made = Made::At(std::mem::take(&mut self.paths));
            self.generation.cleanup.undo_exact(&self.generation, write, made);
        }
    }
}

/// Result of one attempt.
enum Attempt {
    Created(i64),
    Refused(usize, Code),
    Again,
}

/// Claims all of `wanted` in one write, all or none, and reads the nodes that they are claims of in the same
/// trip. `recipe` is the label of the metrics, `operation` the method of the recipe that errors name.
///
/// A claim is an exclusive [`Hold`] by an ephemeral node at a fixed path, which others may use before and
/// afterwards.
///
/// # Guarantees
/// A node is taken for ours only if it is proven to be: by the reply, or after a lost one by the id in the
/// data of the write's marker, in the same session. It is deleted in that session only, and after a lost
/// reply only while it is the same node: never one that somebody else made at the path since.
///
/// # Assumptions
/// Nobody deletes the node by hand while its session lives. A watch tells of such a delete; until then the
/// next claim could be taken for this one.
///
/// # Errors
/// `ShortLease` when the session timeout is below four ticks of the server, `NoAuth`, `TooLarge`, `Timeout`,
/// `Closed`; `InvalidInput` when nothing is wanted or a path breaks a rule.
///
/// # Cancel safety
/// This function is cancel safe: the claims are deleted, also where the reply is lost.
pub async fn claim_all(
    client: &Client,
    wanted: &[ClaimRequest],
    recipe: &'static str,
    operation: &'static str,
) -> Result<ClaimResult, Error> {
    let Some(first) = wanted.first() else {
        return Err(Error::invalid_input(operation, "a batch of 0 must be at least 1"));
    };
    let full = wanted
        .iter()
        .map(|request| Wanted::new(client, request, operation))
        .collect::<Result<Vec<_>, _>>()?;
    // An exact write is sent again only when it is certain that the earlier one never is applied; one of
    // unknown outcome is undone (decision 11).
    let mut attempts = client.attempts(operation, &first.claim, Idempotency::Idempotent);
    loop {
        let generation = attempts.generation().await?;
        let Some(marker) = attempts.marker(&generation).await? else { continue };
        // The shutdown looks for writes under way after its stage has come, this one at the stage after that.
        let mut under_way = Some(generation.held.begin_write(recipe));
        // The session is attached now, so that its timeout is known. A claim that is refused afterwards would
        // be counted all the same.
        if client.shared().refuses(Stage::of(recipe)) {
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
            Attempt::Created(czxid) => {
                // The session may have been taken up with a shorter timeout meanwhile.
                if let Err(error) = refuse_short_lease(client, &generation, &attempts) {
                    intent.undo(czxid);
                    return Err(error);
                }
                let held = hold(client, intent, wanted, czxid, recipe);
                drop(under_way);
                let read = reads.all(attempts.deadline).await;
                match (held, read) {
                    (Some(held), Ok(read)) => {
                        return Ok(ClaimResult::All(held.into_iter().zip(read).collect()));
                    }
                    (held, Err(Unread::Refused(code))) => {
                        // The next attempt shall not find them taken by these. Those that are dropped
                        // are deleted, too.
                        let released = join_all(held.into_iter().flatten().map(Hold::release));
                        let _ = Box::pin(timeout_at(attempts.deadline, released)).await;
                        return Err(Error::from_code(code, operation).at(&first.node));
                    }
                    // The lease ran out before the reply came, or the link did not last for the reads: the
                    // claims are deleted, and made once more.
                    _ if Instant::now() >= attempts.deadline => return Err(attempts.timeout()),
                    (_, Err(Unread::Cause(cause))) => attempts.retry(&generation, false, cause).await?,
                    (None, _) => attempts.retry(&generation, false, Cause::LinkLost).await?,
                }
            }
            Attempt::Refused(op, code) => return refused(wanted, claim_of(&full, op), code, operation),
            Attempt::Again => {}
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

/// Result of claims of which one was refused.
fn refused(
    wanted: &[ClaimRequest],
    (index, makes_claim): (usize, bool),
    code: Code,
    operation: &'static str,
) -> Result<ClaimResult, Error> {
    match code {
        Code::NODE_EXISTS if makes_claim => Ok(ClaimResult::Taken(index)),
        Code::NO_NODE if makes_claim => Ok(ClaimResult::NoParent(index)),
        Code::NO_NODE => Ok(ClaimResult::NoNode(index)),
        code => {
            let request = &wanted[index];
            Err(Error::from_code(code, operation).at(if makes_claim {
                &request.claim
            } else {
                &request.node
            }))
        }
    }
}

/// Keeps a write under way for the client's shutdown while the link lasts that it was sent on: in an outage
/// nobody is told of it in time. Never resolves.
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
    let Some(write) = &mut intent.write else { return Ok(Attempt::Again) };
    let ended = write.ended(attempts.deadline).await;
    // A write whose outcome is not certain is undone by the drop of the intent.
    if !matches!(ended, Ended::Unknown(_)) {
        intent.write = None;
    }
    let cause = match ended {
        Ended::Applied(results, stat) => {
            if results.is_none() {
                // Without results the session has not counted the nodes.
                intent.paths.iter().for_each(|path| generation.session.owns(path));
            }
            return Ok(Attempt::Created(stat.mzxid));
        }
        Ended::Failed(index, code) => return Ok(Attempt::Refused(index, code)),
        Ended::NotApplied(Cause::LinkLost) if planted!(NoNodeIsClaim) => {
            return Ok(Attempt::Created(generation.session.last_zxid()));
        }
        Ended::NoMarker => return Ok(Attempt::Again),
        Ended::Refused(Code::THROTTLED) => Cause::QueueFull,
        Ended::Refused(code) => return Ok(Attempt::Refused(0, code)),
        Ended::NotApplied(cause) | Ended::Unknown(cause) => cause,
    };
    attempts.retry(generation, false, cause).await?;
    Ok(Attempt::Again)
}

/// Makes guards of the claims. `None` when the lease has run out: all of them are deleted then.
fn hold(
    client: &Client,
    mut intent: Intent,
    wanted: &[ClaimRequest],
    czxid: i64,
    recipe: &'static str,
) -> Option<Vec<Hold>> {
    // From here on the drop of a guard deletes its node, and not that of the intent.
    let paths = intent.take_paths();
    let generation = &intent.generation;
    let claims = paths.into_iter().zip(wanted).map(|(path, wanted)| {
        let node = OwnedNode::by_czxid(Arc::clone(generation), path, czxid).confirmed_at(intent.losses);
        let node = Arc::new(node);
        let state = generation.hold(&node, recipe, Beginning::is_creation(), None);
        if state.is_none() {
            give_back(node);
        }
        Some(Hold::new(client.clone(), wanted.claim.clone(), Role::Exclusive, state?))
    });
    // Collected twice: the first one makes a guard of each or gives its node back, also behind one that
    // failed.
    let claims: Vec<Option<Hold>> = claims.collect();
    // Only now that each node has a guard that sees to its end: metrics are recorded by code of others, which
    // may panic.
    for _ in claims.iter().flatten() {
        telemetry::acquired(&generation.client, recipe, generation.clock.now().since(intent.submitted));
    }
    claims.into_iter().collect()
}

/// Deletes the node of a claim that no hold has.
fn give_back(node: Arc<OwnedNode>) {
    if node.leave() {
        drop(Deletion::new(node));
    }
}
