use super::request::Unread;
use crate::cleanup::OwnedNode;
use crate::guard::SessionGeneration;
use crate::node::is_proof;
use crate::operation::Shared;
use crate::session::abilities::Ability;
use crate::session::context::send_until_answered;
use crate::session::{Cause, Lane, Outcome, Pending, Reply, lookup};
use docent_proto::{Code, MultiOp, MultiResult, Request, Response, parent};
use futures_util::future::try_join_all;
use std::sync::Arc;
use tokio::time::{Instant, timeout_at};

/// Searches for proofs of earlier claims whose own nodes were deleted while their sessions live on, usually
/// by another client. A claim is handed out only after these proofs are deleted, so that the servers refuse
/// what the earlier holders still send (decision 28).
pub(super) struct Rivals<'a> {
    generation: &'a SessionGeneration,
    /// Claims of this client, whose nodes other clients' nodes may have replaced by now.
    own: Vec<Arc<OwnedNode>>,
    /// The reads in flight, in the order of `own`, each with the number of claims that it covers.
    reads: Vec<(usize, Pending)>,
}

/// Result of the deletion of earlier proofs.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Evicted {
    /// No other proof was found.
    None,
    /// Earlier proofs were found and deleted.
    Earlier,
    /// A later proof exists, or this client's proof does not: a later claim or another client deleted it.
    Later,
}

/// Children of a claimed node, and the transaction that created the claim's node; `None` if that node does
/// not exist.
type Observed = (Vec<String>, Option<i64>);

impl<'a> Rivals<'a> {
    /// Submits the reads, after the write that creates the proofs of `claims`.
    pub(super) fn submit<'n>(
        shared: &Shared,
        generation: &'a SessionGeneration,
        claims: impl IntoIterator<Item = &'n Arc<OwnedNode>>,
    ) -> Self {
        let mut rivals = Self::of(generation, claims);
        let ops_of = |own: &Arc<OwnedNode>| {
            let list = MultiOp::GetChildren { path: claimed_node(own).to_owned() };
            [list, MultiOp::GetData { path: own.path.clone() }]
        };
        let max = shared.max_reads_per_request() / 2;
        if !shared.abilities.lacks(Ability::MultiReads) && max > 0 {
            let submit = |own: &[Arc<OwnedNode>]| {
                let ops = own.iter().flat_map(ops_of).collect();
                (own.len(), generation.session.submit(Request::MultiRead(ops), Lane::Call))
            };
            rivals.reads = rivals.own.chunks(max).map(submit).collect();
        }
        rivals
    }

    /// Prepares the search for `claims` whose proofs already exist.
    pub(super) fn of<'n>(
        generation: &'a SessionGeneration,
        claims: impl IntoIterator<Item = &'n Arc<OwnedNode>>,
    ) -> Self {
        Self { generation, own: claims.into_iter().map(Arc::clone).collect(), reads: Vec::new() }
    }

    /// Discards the submitted reads, which may have been answered before the proofs were created.
    pub(super) fn without_requests(self) -> Self {
        Self { reads: Vec::new(), ..self }
    }

    /// Deletes the proofs of earlier claims. The proofs of this client were created by the transaction
    /// `czxid`, which was applied before the reads were sent. Returns the claims that do not make this client
    /// the holder: the claimed node has the proof of a later claim, or the claim's node belongs to another
    /// client.
    ///
    /// # Errors
    /// If the servers refuse a request, if the session ended, or if the deadline passed.
    ///
    /// # Cancel safety
    /// Cancel safe.
    pub(super) async fn evict(
        mut self,
        czxid: i64,
        deadline: Instant,
    ) -> Result<Vec<Arc<OwnedNode>>, Unread> {
        if planted!(EarlierProofStays) || self.own.is_empty() {
            return Ok(Vec::new());
        }
        let evicted = timeout_at(deadline, async {
            let mut observed = Vec::with_capacity(self.own.len());
            for (count, read) in std::mem::take(&mut self.reads) {
                let own = &self.own[observed.len()..][..count];
                match listed(own, &read.await) {
                    Some(claims) => observed.extend(claims),
                    None => observed.extend(self.read_claims(own).await?),
                }
            }
            let remaining = self.read_claims(&self.own[observed.len()..]).await?;
            observed.extend(remaining);
            let mut superseded = Vec::new();
            for (own, (names, mut creator)) in self.own.iter().zip(observed) {
                let is_newest = match self.evict_from(own, czxid, &names).await? {
                    Evicted::Later => false,
                    Evicted::None => true,
                    Evicted::Earlier => {
                        // The holders of those proofs may have deleted our claim's node, because it has the
                        // same path as theirs.
                        creator = self.creator(own).await?;
                        true
                    }
                };
                if !is_newest || creator != Some(own.czxid) {
                    superseded.push(Arc::clone(own));
                }
            }
            Ok(superseded)
        });
        evicted.await.unwrap_or(Err(Unread::Cause(Cause::Deadline)))
    }

    /// Reads the nodes one by one, several concurrently.
    async fn read_claims(&self, own: &[Arc<OwnedNode>]) -> Result<Vec<Observed>, Unread> {
        const MAX_CONCURRENT: usize = 64;
        let mut observed = Vec::with_capacity(own.len());
        for some in own.chunks(MAX_CONCURRENT) {
            let mut reads = Vec::with_capacity(some.len());
            for own in some {
                reads.push(self.read_claim(own));
            }
            observed.extend(try_join_all(reads).await?);
        }
        Ok(observed)
    }

    async fn read_claim(&self, own: &OwnedNode) -> Result<Observed, Unread> {
        let names = self.list(claimed_node(own)).await?;
        Ok((names, self.creator(own).await?))
    }

    /// Returns the transaction that created the node at the path of a claim; `None` if there is no node.
    async fn creator(&self, own: &OwnedNode) -> Result<Option<i64>, Unread> {
        let found = lookup::stat(self.generation, &own.path).await.map_err(Unread::Cause)?;
        Ok(found.map(|stat| stat.czxid))
    }

    async fn list(&self, node: &str) -> Result<Vec<String>, Unread> {
        let list = || Request::GetChildren2 { path: node.to_owned(), watch: false };
        match self.send(list).await? {
            Ok(Response::Children { names, .. }) => Ok(names),
            Ok(_) => Err(Unread::Refused(Code::MARSHALLING_ERROR, node.to_owned())),
            // The node was deleted, and its children before it.
            Err(Code::NO_NODE) => Ok(Vec::new()),
            Err(code) => Err(Unread::Refused(code, node.to_owned())),
        }
    }

    async fn send(&self, request: impl Fn() -> Request) -> Result<Result<Response, Code>, Unread> {
        match send_until_answered(self.generation, Lane::Call, request).await {
            Ok(reply) => Ok(reply.result),
            Err(stop) => Err(Unread::Cause(stop.into())),
        }
    }

    /// Deletes those of the proofs `names` that are earlier than the proof of `own`.
    async fn evict_from(&self, own: &OwnedNode, czxid: i64, names: &[String]) -> Result<Evicted, Unread> {
        let node = claimed_node(own);
        let own_name = own.proof().and_then(|proof| proof.rsplit('/').next());
        let is_own = |name: &&String| own_name == Some(name);
        let mut found = match names.iter().any(|name| is_own(&name)) {
            true => Evicted::None,
            false => Evicted::Later,
        };
        for name in names.iter().filter(|name| is_proof(name) && !is_own(name)) {
            let path = format!("{node}/{name}");
            match lookup::stat(self.generation, &path).await.map_err(Unread::Cause)? {
                Some(stat) if stat.czxid < czxid => {
                    self.delete(path).await?;
                    found = found.max(Evicted::Earlier);
                }
                Some(_) => found = Evicted::Later,
                None => found = found.max(Evicted::Earlier),
            }
        }
        Ok(found)
    }

    async fn delete(&self, path: String) -> Result<(), Unread> {
        // Event: An earlier claim's node was deleted by another client or a person while its holder was
        // alive. The client deletes the remaining proof node, which makes every write of that holder fail.
        // Action: Find out who deletes claim nodes by hand.
        tracing::info!(target: "docent::lock", client = %self.generation.client, %path, "another client deleted an earlier claim's node but not its proof; deleting the proof");
        // The name is used once: a repeated or late delete does no harm.
        let delete = || Request::Delete { path: path.clone(), version: -1 };
        match self.send(delete).await? {
            Ok(_) | Err(Code::NO_NODE) => Ok(()),
            Err(code) => Err(Unread::Refused(code, parent(&path).unwrap_or("/").to_owned())),
        }
    }
}

/// Returns the full path of the claimed node, which is the parent of the proof.
fn claimed_node(own: &OwnedNode) -> &str {
    own.proof().and_then(parent).unwrap_or("/")
}

/// Returns the result of the search, if the servers returned all of it.
fn listed(own: &[Arc<OwnedNode>], outcome: &Outcome) -> Option<Vec<Observed>> {
    let Outcome::Reply(Reply { result: Ok(Response::Multi(results)), .. }) = outcome else { return None };
    let mut results = results.iter();
    let mut next = || {
        let names = match results.next()? {
            MultiResult::Children(names) => names.clone(),
            MultiResult::Failed(Code::NO_NODE) => Vec::new(),
            _ => return None,
        };
        let creator = match results.next()? {
            MultiResult::Data { stat, .. } => Some(stat.czxid),
            MultiResult::Failed(Code::NO_NODE) => None,
            _ => return None,
        };
        Some((names, creator))
    };
    own.iter().map(|_| next()).collect()
}
