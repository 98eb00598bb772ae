use super::by_czxid::{self, delete_claim};
use super::by_name::{self, delete_owned};
use crate::guard::SessionGeneration;
use crate::operation::Shared;
use crate::session::{Lane, Outcome, Pending};
use docent_proto::{Code, MultiOp};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicUsize, Ordering, fence};
use tokio::sync::oneshot;
use tokio::time::Instant;

/// Ephemeral node of a session of this client.
#[derive(Debug)]
pub(crate) struct OwnedNode {
    pub(crate) generation: Arc<SessionGeneration>,
    /// Full path.
    pub(crate) path: String,
    /// Transaction that created the node; 0 if unknown.
    pub(crate) czxid: i64,
    /// Set for the node of a claim, at a path that other clients may use after the deletion.
    claim: Option<Proof>,
    /// Set by the first handle that takes care of the deletion, so that the node is deleted only once.
    deletion_begun: AtomicBool,
    /// Number of writes with unknown outcome that are refused once this node is deleted.
    unsettled: AtomicUsize,
}

/// A claim whose create is in flight.
#[derive(Debug)]
pub(crate) struct NewClaim {
    /// Full path of the claim's node.
    pub(crate) path: String,
    /// Full path of its proof.
    pub(crate) proof: String,
    /// True if the proof is created together with the claim.
    pub(crate) handed_out: bool,
    /// Version of the claim's node after its creation, which shows how the claim was created (decision 28).
    pub(crate) version: i32,
}

/// Second node of a claim, which distinguishes the claim from other claims at the same path (decision 28).
#[derive(Debug)]
struct Proof {
    /// Full path: a child of the claimed node, with a name that no other claim has.
    path: String,
    /// Whether the proof exists: [`MISSING`], [`UNDER_WAY`] or [`EXISTS`].
    stage: AtomicU8,
    /// False if one write created the claim and handed it out.
    created_ahead: bool,
    /// Version of the claim's node after its creation.
    version: i32,
}

const MISSING: u8 = 0;
const UNDER_WAY: u8 = 1;
const EXISTS: u8 = 2;

impl OwnedNode {
    /// Creates the record of a node with a unique name.
    pub(crate) fn by_name(generation: Arc<SessionGeneration>, path: String, czxid: i64) -> Self {
        Self {
            generation,
            path,
            czxid,
            claim: None,
            deletion_begun: AtomicBool::new(false),
            unsettled: AtomicUsize::new(0),
        }
    }

    /// Creates the record of a claim's node that the transaction `czxid` created.
    pub(crate) fn claim(generation: Arc<SessionGeneration>, claim: NewClaim, czxid: i64) -> Self {
        let NewClaim { path, proof, handed_out, version } = claim;
        let stage = AtomicU8::new(if handed_out { EXISTS } else { MISSING });
        let claim = Some(Proof { path: proof, stage, created_ahead: !handed_out, version });
        Self { claim, ..Self::by_name(generation, path, czxid) }
    }

    /// Records that the claim is being handed out: its proof may exist from now on.
    pub(crate) fn handing_out(&self) {
        self.advance(UNDER_WAY);
    }

    /// Records that the claim is handed out: its proof exists.
    pub(crate) fn handed_out(&self) {
        self.advance(EXISTS);
    }

    fn advance(&self, stage: u8) {
        self.claim.iter().for_each(|proof| _ = proof.stage.fetch_max(stage, Ordering::AcqRel));
    }

    /// Returns true for the node of a claim: other clients may create a node at its path after the deletion.
    pub(crate) fn is_claim(&self) -> bool {
        self.claim.is_some()
    }

    /// Full path of the claim's proof, before or after it exists; `None` for other nodes.
    pub(crate) fn proof(&self) -> Option<&str> {
        self.proof_from(MISSING)
    }

    /// Full path of the claim's proof, if the proof may exist.
    pub(super) fn possible_proof(&self) -> Option<&str> {
        self.proof_from(UNDER_WAY)
    }

    /// Full path of the claim's proof, if its stage is `stage` or a later one.
    fn proof_from(&self, stage: u8) -> Option<&str> {
        let proof = self.claim.as_ref()?;
        (proof.stage.load(Ordering::Acquire) >= stage).then_some(&*proof.path)
    }

    /// Version of the node, before or after its claim is handed out; −1 if the node's name is unique.
    pub(crate) fn version(&self, is_handed_out: bool) -> i32 {
        match &self.claim {
            None => -1,
            // Handing out a claim that was created ahead sets its node once.
            Some(Proof { created_ahead, version, .. }) => {
                version + i32::from(*created_ahead && is_handed_out)
            }
        }
    }

    /// Path of the node that exists only as long as this hold.
    pub(crate) fn unique_path(&self) -> &str {
        self.proof_from(EXISTS).unwrap_or(&self.path)
    }

    /// Operations that the servers refuse once the node or its proof is deleted.
    pub(crate) fn checks(&self) -> impl Iterator<Item = MultiOp> {
        let proof = self.proof_from(EXISTS);
        let version = if planted!(ClaimUnchecked) { -1 } else { self.version(proof.is_some()) };
        let node = MultiOp::Check { path: self.path.clone(), version };
        let proof = proof.filter(|_| !planted!(ClaimUnchecked));
        let proof = proof.map(|proof| MultiOp::Check { path: proof.to_owned(), version: -1 });
        std::iter::once(node).chain(proof)
    }

    /// Operations that delete the node and its proof.
    pub(crate) fn deletes(&self) -> impl Iterator<Item = MultiOp> {
        let proof = self.possible_proof();
        let node = MultiOp::Delete { path: self.path.clone(), version: self.version(proof.is_some()) };
        let proof = proof.map(|proof| MultiOp::Delete { path: proof.to_owned(), version: -1 });
        std::iter::once(node).chain(proof)
    }

    /// Returns false if the node at the path, created by the transaction `czxid`, is a different node.
    pub(crate) fn is_same(&self, czxid: i64) -> bool {
        planted!(ClaimUnchecked) || !self.is_claim() || self.czxid == czxid
    }

    /// Lets another handle delete the node, because it could not be deleted.
    pub(super) fn deletion_failed(&self) {
        self.deletion_begun.store(false, Ordering::Release);
    }

    /// Returns true for the first caller, which then takes care of the deletion.
    pub(crate) fn begin_deletion(&self) -> bool {
        !self.deletion_begun.swap(true, Ordering::AcqRel)
    }

    /// Counts a write that is refused once this node is deleted. Called before the caller checks whether its
    /// guard is held: either the next guard with this node learns of the write, or the write is refused
    /// (decision 19).
    pub(crate) fn begin_write(&self) {
        self.unsettled.fetch_add(1, Ordering::SeqCst);
        // A guard's end is stored and read with release and acquire ordering only. This side counts the write
        // and then reads the end; the other side stores the end and then reads the count. With both fences,
        // at least one side sees the other.
        fence(Ordering::SeqCst);
    }

    /// Records that the outcome of a write is known.
    pub(crate) fn end_write(&self) {
        self.unsettled.fetch_sub(1, Ordering::SeqCst);
    }

    /// Returns true if no write of an earlier guard may still be applied. The caller must have ended that
    /// guard.
    pub(crate) fn is_settled(&self) -> bool {
        fence(Ordering::SeqCst);
        self.unsettled.load(Ordering::SeqCst) == 0
    }
}

/// A delete of a node in flight. Dropping it hands the rest of the work to the worker.
#[derive(Debug)]
pub(crate) struct Deletion {
    node: Arc<OwnedNode>,
    /// The request; `None` after it was handed to the worker.
    sent: Option<Pending>,
    /// True if nothing is left to do for the worker.
    done: bool,
}

/// Outcome of the delete of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DeleteOutcome {
    /// The node is deleted.
    Deleted,
    /// The servers refuse to delete the node.
    Refused(Code),
    /// The client was closed; the node is deleted with its session.
    Closed,
    /// Not deleted yet: the worker continues.
    Timeout,
}

impl Deletion {
    /// Submits the delete, which now has its place in the order of calls.
    pub(crate) fn new(node: Arc<OwnedNode>) -> Self {
        let request = match node.is_claim() {
            true => by_czxid::delete_request(&node),
            false => by_name::delete_request(&node.path),
        };
        let sent = node.generation.session.submit(request, Lane::Cleanup);
        Self { node, sent: Some(sent), done: false }
    }

    /// Waits until the node is deleted, at most until `deadline`.
    pub(crate) async fn by(mut self, deadline: Instant) -> DeleteOutcome {
        match self.first_attempt(deadline).await {
            Some(outcome) => return outcome,
            None if Instant::now() >= deadline => return DeleteOutcome::Timeout,
            None => {}
        }
        // Further attempts are left to the worker.
        let (done, outcome) = oneshot::channel();
        self.hand_over(Some(done));
        match tokio::time::timeout_at(deadline, outcome).await {
            Ok(Ok(outcome)) => outcome,
            Ok(Err(_)) => DeleteOutcome::Closed,
            Err(_) => DeleteOutcome::Timeout,
        }
    }

    /// Returns the outcome of the submitted delete; `None` if another attempt or more time is needed.
    async fn first_attempt(&mut self, deadline: Instant) -> Option<DeleteOutcome> {
        let outcome = tokio::time::timeout_at(deadline, self.sent.as_mut()?).await.ok()?;
        self.done = is_deleted(&self.node, &outcome);
        self.sent = Some(Pending::ready(outcome));
        self.done.then_some(DeleteOutcome::Deleted)
    }

    fn hand_over(&mut self, done: Option<oneshot::Sender<DeleteOutcome>>) {
        if !std::mem::replace(&mut self.done, true) {
            self.node.generation.cleanup.delete(&self.node, self.sent.take(), done);
        }
    }
}

fn is_deleted(node: &OwnedNode, outcome: &Outcome) -> bool {
    let Outcome::Reply(answer) = outcome else { return false };
    match answer.refusal() {
        None => true,
        // If a claim's node does not exist, its proof may exist.
        Some(code) => code == Code::NO_NODE && !node.is_claim(),
    }
}

impl Drop for Deletion {
    fn drop(&mut self) {
        self.hand_over(None);
    }
}

/// Deletes `node`; `sent` is the request that is in flight.
pub(super) async fn delete(client: &Shared, node: &OwnedNode, sent: Option<Pending>) -> DeleteOutcome {
    if node.is_claim() {
        return delete_claim(client, node, sent).await;
    }
    let generation = Arc::clone(&node.generation);
    delete_owned(client, generation.number, generation, node.path.clone(), sent).await
}
