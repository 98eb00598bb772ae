use crate::cleanup::{CLAIMED, ClaimPaths, HANDED_OUT};
use crate::client::Client;
use crate::error::Error;
use crate::node::PROOF;
use crate::operation::Shared;
use bytes::Bytes;
use docent_proto::{Create, CreateMode, MultiOp};
use uuid::Uuid;

/// A claim to make.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClaimRequest {
    /// Path of the claim: an ephemeral node whose parent exists.
    pub claim: String,
    /// Path of the claimed node, which is read in the same round trip.
    pub node: String,
    /// Whether the same write also [hands the claim out](super::hand_out).
    pub handed_out: bool,
}

/// A claim to make, with full paths.
pub(super) struct Wanted {
    claim: String,
    pub(super) node: String,
    handed_out: bool,
}

/// Number of operations that make one claim.
pub(super) const OPS_OF_A_CLAIM: usize = 4;

/// Path of the proof of a claim of `node`, made with this id.
fn proof_of(node: &str, id: Uuid) -> String {
    format!("{node}/{id}{PROOF}")
}

/// The create of the proof at this full path.
pub(super) fn create_proof(shared: &Shared, proof: &str) -> MultiOp {
    let acl = shared.acl(proof);
    MultiOp::Create(Create::new(proof.to_owned(), Bytes::new(), acl, CreateMode::Ephemeral, 0))
}

impl Wanted {
    #[cfg(test)]
    pub(super) fn of(node: &str) -> Self {
        Self { claim: format!("{node}/claim"), node: node.to_owned(), handed_out: false }
    }

    pub(super) fn new(
        client: &Client,
        request: &ClaimRequest,
        operation: &'static str,
    ) -> Result<Self, Error> {
        let full = |path: &String| client.shared().namespace.full(operation, path);
        Ok(Self {
            claim: full(&request.claim)?,
            node: full(&request.node)?,
            handed_out: request.handed_out && !planted!(HandOutNotCounted),
        })
    }

    /// Paths of the nodes that an attempt with this id makes.
    pub(super) fn paths(&self, id: Uuid) -> ClaimPaths {
        let (claim, proof) = (self.claim.clone(), proof_of(&self.node, id));
        ClaimPaths { claim, proof, handed_out: self.handed_out }
    }

    /// The operations of an attempt with this id. The create of the claim comes first: so a claim of another
    /// client is told from a node that was deleted.
    pub(super) fn ops(&self, shared: &Shared, id: Uuid) -> [MultiOp; OPS_OF_A_CLAIM] {
        let data = Bytes::from(shared.identity.clone());
        let acl = shared.acl(&self.claim);
        let create = Create::new(self.claim.clone(), data.clone(), acl, CreateMode::Ephemeral, 0);
        // The version says what the claim is (decision 28).
        let set = |version| set_version(&self.claim, &data, version);
        let (second, about_node) = match self.handed_out {
            true => (set(HANDED_OUT), create_proof(shared, &proof_of(&self.node, id))),
            false => {
                let check = |path: &String, version| MultiOp::Check { path: path.clone(), version };
                (check(&self.claim, CLAIMED), check(&self.node, -1))
            }
        };
        [MultiOp::Create(create), set(CLAIMED), second, about_node]
    }
}

/// Sets the data of the claim at this full path, and so its version to `version`.
pub(super) fn set_version(claim: &str, data: &Bytes, version: i32) -> MultiOp {
    MultiOp::SetData { path: claim.to_owned(), data: Some(data.clone()), version: version - 1 }
}

/// The claim that the operation with this index is about, and whether the operation is about the claim's own
/// node.
pub(super) fn claim_of(op: usize) -> (usize, bool) {
    (op / OPS_OF_A_CLAIM, op % OPS_OF_A_CLAIM != OPS_OF_A_CLAIM - 1)
}
