use crate::cleanup::NewClaim;
use crate::client::Client;
use crate::error::{Error, if_exists};
use crate::guard::SessionGeneration;
use crate::node::{Node, PROOF, is_proof};
use crate::operation::Shared;
use crate::session::abilities::Ability;
use crate::session::{Cause, Lane, Pending, lookup};
use bytes::Bytes;
use docent_proto::{Code, Create, CreateMode, MultiOp, MultiResult, Request, Response, Stat};
use std::collections::VecDeque;
use tokio::time::{Instant, timeout_at};
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

/// Path of the proof of a claim of `node` with this id.
fn proof_of(node: &str, id: Uuid) -> String {
    format!("{node}/{id}{PROOF}")
}

/// Returns the paths of the proofs of claims of `node`; none if the node does not exist. As long as a proof
/// exists, the servers apply the writes of the claim's holder. Once it is deleted, they refuse them, even
/// while the holder's process is stalled.
///
/// # Errors
/// Those of [`Client::children`], except for `NoNode`.
pub async fn proofs_below(client: &Client, node: &str) -> Result<Vec<String>, Error> {
    let children = if_exists(client.children(node).await)?;
    let names = children.map_or_else(Vec::new, |children| children.names);
    Ok(names.into_iter().filter(|name| is_proof(name)).map(|name| format!("{node}/{name}")).collect())
}

/// The create operation for the proof at this full path.
pub(super) fn create_proof(shared: &Shared, proof: &str) -> MultiOp {
    let acl = shared.acl(proof);
    MultiOp::Create(Create::new(proof.to_owned(), Bytes::new(), acl, CreateMode::Ephemeral, 0))
}

impl ClaimRequest {
    /// Returns the same claim with full paths, which the following methods need.
    pub(super) fn full(&self, client: &Client, operation: &'static str) -> Result<Self, Error> {
        let full = |path: &String| client.shared().namespace.full(operation, path);
        Ok(Self {
            claim: full(&self.claim)?,
            node: full(&self.node)?,
            handed_out: self.handed_out && !planted!(HandOutNotCounted),
            ..*self
        })
    }

    /// The claim that an attempt with this id creates.
    pub(super) fn claim(&self, id: Uuid) -> NewClaim {
        let proof = proof_of(&self.node, id);
        NewClaim { path: self.claim.clone(), proof, handed_out: self.handed_out, version: self.version() }
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

    /// Version of the claim's node after its creation. Beside Curator it is never 0, which is the version of
    /// the lock node of a Curator consumer.
    fn version(&self) -> i32 {
        i32::from(self.beside_curator) + i32::from(!self.handed_out)
    }
}

/// Sets the data of the claim at this full path, which changes its version to `version`.
pub(super) fn set_version(claim: &str, data: &Bytes, version: i32) -> MultiOp {
    MultiOp::SetData { path: claim.to_owned(), data: Some(data.clone()), version: version - 1 }
}

/// Returns the claim that the operation with this index concerns, and whether the operation concerns the
/// claim's own node.
pub(super) fn claim_of(wanted: &[ClaimRequest], op: usize) -> (usize, bool) {
    let mut after = 0;
    for (claim, wanted) in wanted.iter().enumerate() {
        after += wanted.op_count();
        if op < after {
            return (claim, op + 1 < after);
        }
    }
    (wanted.len().saturating_sub(1), false)
}

/// Reads of claimed nodes in flight, several in one request if the servers support that.
pub(super) struct Reads<'a> {
    generation: &'a SessionGeneration,
    /// The requests that were not answered yet, each with its nodes.
    pending: VecDeque<(&'a [ClaimRequest], Pending)>,
}

#[derive(Debug)]
pub(super) enum Unread {
    /// Contains the full path that the refusal concerns.
    Refused(Code, String),
    Cause(Cause),
}

/// Data and stat of a node; `None` if the node does not exist.
type Found = Option<(Option<Bytes>, Stat)>;

impl<'a> Reads<'a> {
    /// Submits the reads, which have their place in the order of calls when this returns.
    pub(super) fn submit(
        shared: &'a Shared,
        generation: &'a SessionGeneration,
        wanted: &'a [ClaimRequest],
    ) -> Self {
        let lacks = shared.abilities.lacks(Ability::MultiReads);
        let max = if lacks { 1 } else { shared.max_reads_per_request() };
        let submit =
            |nodes: &'a [ClaimRequest]| (nodes, generation.session.submit(request(nodes), Lane::Call));
        Self { generation, pending: wanted.chunks(max).map(submit).collect() }
    }

    /// Returns the nodes. A read without a reply, or refused by an overloaded server, is repeated in the same
    /// session after a `sync`.
    pub(super) async fn all(mut self, deadline: Instant) -> Result<Vec<Option<Node>>, Unread> {
        let generation = self.generation;
        let mut all = Vec::new();
        while let Some((nodes, mut read)) = self.pending.pop_front() {
            let outcome = read.by(deadline).await;
            let found = match outcome.answer() {
                Ok(reply) => match reply.result {
                    Err(Code::UNIMPLEMENTED) if nodes.len() > 1 => {
                        read_one_by_one(generation, nodes, deadline).await?
                    }
                    result => found(nodes.len(), result)
                        .map_err(|(index, code)| Unread::Refused(code, nodes[index].node.clone()))?,
                },
                // Also if a server was overloaded: re-created claims would be counted again.
                Err(Cause::LinkLost | Cause::QueueFull) => {
                    read_one_by_one(generation, nodes, deadline).await?
                }
                Err(Cause::TooLarge { .. }) if nodes.len() > 1 => {
                    read_one_by_one(generation, nodes, deadline).await?
                }
                Err(cause) => return Err(Unread::Cause(cause)),
            };
            let node = |(data, stat): (Option<Bytes>, Stat)| {
                let data = data.unwrap_or_default();
                // Copy the data: a slice of the reply would keep the whole reply in memory.
                let data = if nodes.len() > 1 { Bytes::copy_from_slice(&data) } else { data };
                Node { data, stat: stat.into() }
            };
            all.extend(found.into_iter().map(|found| found.map(node)));
        }
        Ok(all)
    }
}

fn request(nodes: &[ClaimRequest]) -> Request {
    match nodes {
        [one] => Request::GetData { path: one.node.clone(), watch: false },
        nodes => {
            Request::MultiRead(nodes.iter().map(|one| MultiOp::GetData { path: one.node.clone() }).collect())
        }
    }
}

/// Extracts the nodes from the answer to a request for `count` nodes.
///
/// # Errors
/// The refusal, with the index of the node that it concerns; 0 if it concerns all of them.
fn found(count: usize, result: Result<Response, Code>) -> Result<Vec<Found>, (usize, Code)> {
    match result {
        Ok(Response::Data { data, stat }) if count == 1 => Ok(vec![Some((data, stat))]),
        Err(Code::NO_NODE) if count == 1 => Ok(vec![None]),
        Ok(Response::Multi(results)) if results.len() == count => {
            let one = |(index, result)| match result {
                MultiResult::Data { data, stat } => Ok(Some((data, *stat))),
                MultiResult::Failed(Code::NO_NODE) => Ok(None),
                MultiResult::Failed(code) => Err((index, code)),
                _ => Err((index, Code::MARSHALLING_ERROR)),
            };
            results.into_iter().enumerate().map(one).collect()
        }
        Ok(_) => Err((0, Code::MARSHALLING_ERROR)),
        Err(code) => Err((0, code)),
    }
}

/// Reads nodes one by one.
async fn read_one_by_one(
    generation: &SessionGeneration,
    nodes: &[ClaimRequest],
    deadline: Instant,
) -> Result<Vec<Found>, Unread> {
    let mut found = Vec::with_capacity(nodes.len());
    for one in nodes {
        let read = timeout_at(deadline, lookup::read(generation, &one.node)).await;
        found.push(read.map_err(|_| Unread::Cause(Cause::Deadline))?.map_err(Unread::Cause)?);
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::Client;
    use crate::session::{Outcome, Reply, SessionEnd};
    use crate::time::deadline;
    use std::time::Duration;

    fn request_for(node: &str) -> ClaimRequest {
        let (claim, node) = (format!("{node}/claim"), node.to_owned());
        ClaimRequest { claim, node, handed_out: false, beside_curator: false }
    }

    #[test]
    fn the_index_of_an_operation_identifies_its_claim_and_whether_it_concerns_the_claims_node() {
        let handed_out = |request| ClaimRequest { handed_out: true, ..request };
        let beside_curator = |request| ClaimRequest { beside_curator: true, ..request };
        let wanted = [
            request_for("/a"),
            handed_out(request_for("/b")),
            beside_curator(request_for("/c")),
            beside_curator(handed_out(request_for("/d"))),
        ];
        // A claim created ahead: create, set, check of its node. A claim that is handed out: one set less.
        // Beside Curator: one set more.
        let claims = [(0, 3), (1, 2), (2, 4), (3, 3)];
        let each = claims.iter().flat_map(|(claim, ops)| (1..=*ops).map(|op| (*claim, op < *ops)));
        let actual = (0..12).map(|op| claim_of(&wanted, op));
        assert!(actual.eq(each));
    }

    /// Result of reads of `count` nodes in one request that was answered with `result`.
    async fn read(count: usize, result: Result<Response, Code>) -> Result<Vec<Option<Node>>, Unread> {
        let client = Client::builder("127.0.0.1:1").build().unwrap();
        let wanted: Vec<_> = (0..count).map(|_| request_for("/item")).collect();
        let reply = Reply::new(result, 1);
        let generation = client.shared().generation();
        let pending = VecDeque::from([(&wanted[..], Pending::ready(Outcome::Reply(reply)))]);
        let reads = Reads { generation: &generation, pending };
        reads.all(deadline(Duration::from_millis(50))).await
    }

    async fn unread(code: Code) -> Unread {
        read(1, Err(code)).await.unwrap_err()
    }

    #[tokio::test]
    async fn a_read_throttled_by_a_server_is_retried_and_does_not_refuse_the_claims() {
        // There is no server that would answer.
        assert!(matches!(unread(Code::THROTTLED).await, Unread::Cause(Cause::Deadline)));
        let expired = unread(Code::SESSION_EXPIRED).await;
        assert!(matches!(expired, Unread::Cause(Cause::Ended(SessionEnd::Expired))));
        assert!(matches!(unread(Code::NO_AUTH).await, Unread::Refused(Code::NO_AUTH, _)));
    }

    #[tokio::test]
    async fn several_nodes_are_read_in_one_request_if_servers_support_it() {
        let data = MultiResult::Data { data: Some(Bytes::from_static(b"item")), stat: Box::default() };
        let missing = MultiResult::Failed(Code::NO_NODE);
        let nodes = read(2, Ok(Response::Multi(vec![data, missing]))).await.unwrap();
        assert_eq!(
            nodes.iter().map(|node| node.as_ref().map(|node| &node.data[..])).collect::<Vec<_>>(),
            [Some(&b"item"[..]), None]
        );
        let refused = read(1, Ok(Response::Multi(vec![MultiResult::Failed(Code::NO_AUTH)]))).await;
        assert!(matches!(refused, Err(Unread::Refused(Code::NO_AUTH, _))));
        // The nodes are then read one by one, from a server that does not exist.
        let unknown = read(2, Err(Code::UNIMPLEMENTED)).await;
        assert!(matches!(unknown, Err(Unread::Cause(Cause::Deadline))));
    }
}
