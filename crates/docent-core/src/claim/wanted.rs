use crate::cleanup::{ClaimVersions, NewClaim};
use crate::client::Client;
use crate::error::Error;
use crate::node::PROOF;
use crate::operation::Shared;
use bytes::Bytes;
use docent_proto::{Create, CreateMode, MultiOp};
use uuid::Uuid;

/// A claim to create.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClaimRequest {
    /// Path of the claim: an ephemeral node whose parent exists.
    pub claim: String,
    /// Path of the claimed node, which is read in the same round trip.
    pub node: String,
    /// Whether the same write also [hands the claim out](super::hand_out).
    pub handed_out: bool,
    /// Whether Curator consumers create their lock nodes at the claim's path. The claim then needs one more
    /// operation, which distinguishes it from a lock node.
    pub beside_curator: bool,
}

/// A claim to create, with full paths.
pub(super) struct Wanted {
    claim: String,
    pub(super) node: String,
    handed_out: bool,
    versions: ClaimVersions,
}

/// Path of the proof of a claim of `node` with this id.
fn proof_of(node: &str, id: Uuid) -> String {
    format!("{node}/{id}{PROOF}")
}

/// The create operation for the proof at this full path.
pub(super) fn create_proof(shared: &Shared, proof: &str) -> MultiOp {
    let acl = shared.acl(proof);
    MultiOp::Create(Create::new(proof.to_owned(), Bytes::new(), acl, CreateMode::Ephemeral, 0))
}

impl Wanted {
    #[cfg(test)]
    pub(super) fn of(node: &str) -> Self {
        let versions = ClaimVersions::new(false);
        Self { claim: format!("{node}/claim"), node: node.to_owned(), handed_out: false, versions }
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
            versions: ClaimVersions::new(request.beside_curator),
        })
    }

    /// The claim that an attempt with this id creates.
    pub(super) fn claim(&self, id: Uuid) -> NewClaim {
        let Self { handed_out, versions, .. } = *self;
        NewClaim { path: self.claim.clone(), proof: proof_of(&self.node, id), handed_out, versions }
    }

    /// The operations of an attempt with this id. The create of the claim comes first, which distinguishes a
    /// claim of another client from a deleted node. The operation on the claimed node comes last.
    pub(super) fn ops(&self, shared: &Shared, id: Uuid) -> impl Iterator<Item = MultiOp> + Clone {
        let acl = shared.acl(&self.claim);
        let identity = Bytes::from(shared.identity.clone());
        let create = Create::new(self.claim.clone(), identity.clone(), acl, CreateMode::Ephemeral, 0);
        let about_node = match self.handed_out {
            true => create_proof(shared, &proof_of(&self.node, id)),
            false => MultiOp::Check { path: self.node.clone(), version: -1 },
        };
        // The version shows the kind of the claim (decision 28).
        let sets = (1..=self.version()).map(move |next| set_version(&self.claim, &identity, next));
        std::iter::once(MultiOp::Create(create)).chain(sets).chain([about_node])
    }

    /// Number of [`ops`](Self::ops).
    pub(super) fn op_count(&self) -> usize {
        2 + usize::try_from(self.version()).expect("a version of a claim is not negative")
    }

    fn version(&self) -> i32 {
        if self.handed_out { self.versions.handed_out() } else { self.versions.created_ahead() }
    }
}

/// Sets the data of the claim at this full path, which changes its version to `version`.
pub(super) fn set_version(claim: &str, data: &Bytes, version: i32) -> MultiOp {
    MultiOp::SetData { path: claim.to_owned(), data: Some(data.clone()), version: version - 1 }
}

/// Returns the claim that the operation with this index concerns, and whether the operation concerns the
/// claim's own node.
pub(super) fn claim_of(wanted: &[Wanted], op: usize) -> (usize, bool) {
    let mut after = 0;
    for (claim, wanted) in wanted.iter().enumerate() {
        after += wanted.op_count();
        if op < after {
            return (claim, op + 1 < after);
        }
    }
    (wanted.len().saturating_sub(1), false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_index_of_an_operation_identifies_its_claim_and_whether_it_concerns_the_claims_node() {
        let handed_out = |node| Wanted { handed_out: true, ..Wanted::of(node) };
        let beside_curator = |wanted| Wanted { versions: ClaimVersions::new(true), ..wanted };
        let wanted = [
            Wanted::of("/a"),
            handed_out("/b"),
            beside_curator(Wanted::of("/c")),
            beside_curator(handed_out("/d")),
        ];
        // A claim created ahead: create, set, check of its node. A claim that is handed out: one set less.
        // Beside Curator: one set more.
        let claims = [(0, 3), (1, 2), (2, 4), (3, 3)];
        let each = claims.iter().flat_map(|(claim, ops)| (1..=*ops).map(|op| (*claim, op < *ops)));
        let actual = (0..12).map(|op| claim_of(&wanted, op));
        assert!(actual.eq(each));
    }
}
