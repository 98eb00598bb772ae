use crate::guard::SessionGeneration;
use docent_proto::MultiOp;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicUsize, Ordering, fence};

/// Versions of a claim's node, which say how the claim was made (decision 28).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ClaimVersions {
    lowest: i32,
}

impl ClaimVersions {
    /// The versions of claims whose paths Docent alone uses, or of claims `beside_curator`: there the lock
    /// node of a Curator consumer has the same path, and version 0.
    pub(crate) fn new(beside_curator: bool) -> Self {
        Self { lowest: i32::from(beside_curator) }
    }

    /// Of a claim that one write created and handed out.
    pub(crate) fn handed_out(self) -> i32 {
        self.lowest
    }

    /// Of a claim that was made ahead, until it is handed out.
    pub(crate) fn made_ahead(self) -> i32 {
        self.lowest + 1
    }

    /// Of a claim that was made ahead, once it is handed out.
    pub(crate) fn handed_out_later(self) -> i32 {
        self.lowest + 2
    }
}

/// Ephemeral node of one of our sessions.
#[derive(Debug)]
pub(crate) struct OwnedNode {
    pub(crate) generation: Arc<SessionGeneration>,
    /// Full path.
    pub(crate) path: String,
    /// Transaction that made it; 0 where that is not known.
    pub(crate) czxid: i64,
    /// Set for the node of a claim, at a path that others may use once it is deleted.
    claim: Option<Proof>,
    /// Set by the first handle that sees to its end, so that it is deleted once.
    left: AtomicBool,
    /// Writes that are refused once this node is gone, and whose outcome is not known.
    unsettled: AtomicUsize,
}

/// A claim on its way to the servers.
#[derive(Debug)]
pub(crate) struct NewClaim {
    /// Full path of the claim's node.
    pub(crate) path: String,
    /// Full path of its proof.
    pub(crate) proof: String,
    /// True when the proof is created together with the claim.
    pub(crate) handed_out: bool,
    pub(crate) versions: ClaimVersions,
}

/// Second node of a claim, by which the servers tell it from other claims at the same path (decision 28).
#[derive(Debug)]
struct Proof {
    /// Full path: a child of the claimed node, with a name that no other claim has.
    path: String,
    /// Whether it exists: [`MISSING`], [`UNDER_WAY`] or [`EXISTS`].
    stage: AtomicU8,
    /// False if one write created the claim and handed it out.
    made_ahead: bool,
    versions: ClaimVersions,
}

const MISSING: u8 = 0;
const UNDER_WAY: u8 = 1;
const EXISTS: u8 = 2;

impl OwnedNode {
    /// A node whose name is ours alone.
    pub(crate) fn by_name(generation: Arc<SessionGeneration>, path: String, czxid: i64) -> Self {
        Self {
            generation,
            path,
            czxid,
            claim: None,
            left: AtomicBool::new(false),
            unsettled: AtomicUsize::new(0),
        }
    }

    /// The node of a claim that the transaction `czxid` made.
    pub(crate) fn claim(generation: Arc<SessionGeneration>, claim: NewClaim, czxid: i64) -> Self {
        let NewClaim { path, proof, handed_out, versions } = claim;
        let stage = AtomicU8::new(if handed_out { EXISTS } else { MISSING });
        let claim = Some(Proof { path: proof, stage, made_ahead: !handed_out, versions });
        Self { generation, path, czxid, claim, left: AtomicBool::new(false), unsettled: AtomicUsize::new(0) }
    }

    /// Notes that the claim is being handed out: its proof may exist from now on.
    pub(crate) fn handing_out(&self) {
        self.reach(UNDER_WAY);
    }

    /// Notes that the claim is handed out: its proof exists.
    pub(crate) fn handed_out(&self) {
        self.reach(EXISTS);
    }

    fn reach(&self, stage: u8) {
        self.claim.iter().for_each(|proof| _ = proof.stage.fetch_max(stage, Ordering::AcqRel));
    }

    /// True for the node of a claim: others may create a node at its path once it is deleted.
    pub(crate) fn is_claim(&self) -> bool {
        self.claim.is_some()
    }

    /// Full path of the claim's proof, before or after it exists. `None` for other nodes.
    pub(crate) fn proof(&self) -> Option<&str> {
        self.proof_from(MISSING)
    }

    /// Full path of the claim's proof, if it may exist.
    pub(super) fn possible_proof(&self) -> Option<&str> {
        self.proof_from(UNDER_WAY)
    }

    /// Full path of the claim's proof, if its stage is `stage` or a later one.
    fn proof_from(&self, stage: u8) -> Option<&str> {
        let proof = self.claim.as_ref()?;
        (proof.stage.load(Ordering::Acquire) >= stage).then_some(&*proof.path)
    }

    /// Version of the node, before or after its claim is handed out; −1 if its name tells it from others.
    pub(crate) fn version(&self, is_handed_out: bool) -> i32 {
        match &self.claim {
            None => -1,
            Some(Proof { made_ahead: false, versions, .. }) => versions.handed_out(),
            Some(Proof { versions, .. }) if is_handed_out => versions.handed_out_later(),
            Some(Proof { versions, .. }) => versions.made_ahead(),
        }
    }

    /// Path of the node that exists only as long as this hold does.
    pub(crate) fn unique_path(&self) -> &str {
        self.proof_from(EXISTS).unwrap_or(&self.path)
    }

    /// Operations that the servers refuse once the node, or that which tells it from others, is deleted.
    pub(crate) fn checks(&self) -> impl Iterator<Item = MultiOp> {
        let proof = self.proof_from(EXISTS);
        let version = if planted!(ClaimUnchecked) { -1 } else { self.version(proof.is_some()) };
        let node = MultiOp::Check { path: self.path.clone(), version };
        let proof = proof.filter(|_| !planted!(ClaimUnchecked));
        let proof = proof.map(|proof| MultiOp::Check { path: proof.to_owned(), version: -1 });
        std::iter::once(node).chain(proof)
    }

    /// Operations that delete the node with its proof.
    pub(crate) fn deletes(&self) -> impl Iterator<Item = MultiOp> {
        let proof = self.possible_proof();
        let node = MultiOp::Delete { path: self.path.clone(), version: self.version(proof.is_some()) };
        let proof = proof.map(|proof| MultiOp::Delete { path: proof.to_owned(), version: -1 });
        std::iter::once(node).chain(proof)
    }

    /// False when the node at its path, made by the transaction `czxid`, is another one.
    pub(crate) fn is_same(&self, czxid: i64) -> bool {
        planted!(ClaimUnchecked) || !self.is_claim() || self.czxid == czxid
    }

    /// Lets another handle see to the node's end: it could not be deleted.
    pub(super) fn stays(&self) {
        self.left.store(false, Ordering::Release);
    }

    /// True for the first caller, which then sees to the node's end.
    pub(crate) fn leave(&self) -> bool {
        !self.left.swap(true, Ordering::AcqRel)
    }

    /// Counts a write that is refused once this node is gone, before the caller looks whether its guard is
    /// held: the next guard with this node knows of the write, or the write is refused (decision 19).
    pub(crate) fn begin_write(&self) {
        self.unsettled.fetch_add(1, Ordering::SeqCst);
        // A guard's end is stored and read with release and acquire alone. Here the write is counted, then
        // the end is read; there the end is stored, then the count is read. With both fences one of the two
        // sees the other.
        fence(Ordering::SeqCst);
    }

    /// It is known whether the write was applied.
    pub(crate) fn end_write(&self) {
        self.unsettled.fetch_sub(1, Ordering::SeqCst);
    }

    /// True when no write of an earlier guard may still be applied; for a caller that has ended that guard.
    pub(crate) fn is_settled(&self) -> bool {
        fence(Ordering::SeqCst);
        self.unsettled.load(Ordering::SeqCst) == 0
    }
}
