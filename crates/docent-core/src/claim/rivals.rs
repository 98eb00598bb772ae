use super::reads::Unread;
use crate::cleanup::OwnedNode;
use crate::guard::SessionGeneration;
use crate::node::is_proof;
use crate::operation::Shared;
use crate::session::ask::ask;
use crate::session::{Cause, Lane, Outcome, Pending, Reply, lookup};
use docent_proto::{Code, MultiOp, MultiResult, Request, Response, parent};
use futures_util::future::try_join_all;
use std::sync::Arc;
use tokio::time::{Instant, timeout_at};

/// Looks for proofs of earlier claims, whose own nodes were deleted while their sessions live on: by another
/// client's hand, in most cases. A claim is handed out only once they are deleted, so that the servers refuse
/// what the earlier holders still send (decision 28).
pub(super) struct Rivals<'a> {
    generation: &'a SessionGeneration,
    own: Vec<Own>,
    /// The looks under way, in the order of `own`, each with the number of claims that it is about.
    looks: Vec<(usize, Pending)>,
}

/// A claim of ours.
struct Own {
    /// Full path of its proof.
    proof: String,
    /// Its node, which another client may have in its place by now.
    node: Arc<OwnedNode>,
}

/// Result of the deletion of earlier proofs.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Evicted {
    /// The look found none.
    Nothing,
    /// Those that it found are gone.
    Earlier,
    /// There is a later one, or ours is gone: a later claim, or somebody by hand, deleted it.
    Later,
}

/// Children of a claimed node, and the transaction that made the claim's node; `None` where there is none.
type Looked = (Vec<String>, Option<i64>);

impl<'a> Rivals<'a> {
    /// Submits the look, behind the write that makes the proofs of `claims`.
    pub(super) fn submit<'n>(
        shared: &Shared,
        generation: &'a SessionGeneration,
        claims: impl IntoIterator<Item = &'n Arc<OwnedNode>>,
    ) -> Self {
        let mut rivals = Self::of(generation, claims);
        let look = |own: &Own| {
            let list = MultiOp::GetChildren { path: node_of(&own.proof).to_owned() };
            [list, MultiOp::GetData { path: own.node.path.clone() }]
        };
        let most = shared.most_in_a_read() / 2;
        if !shared.multi_reads.is_refused() && most > 0 {
            let ask = |own: &[Own]| {
                let looks = own.iter().flat_map(look).collect();
                (own.len(), generation.session.submit(Request::MultiRead(looks), Lane::Call))
            };
            rivals.looks = rivals.own.chunks(most).map(ask).collect();
        }
        rivals
    }

    /// The look at `claims` that have their proofs already.
    pub(super) fn of<'n>(
        generation: &'a SessionGeneration,
        claims: impl IntoIterator<Item = &'n Arc<OwnedNode>>,
    ) -> Self {
        let own =
            |node: &Arc<OwnedNode>| Some(Own { proof: node.proof()?.to_owned(), node: Arc::clone(node) });
        Self { generation, own: claims.into_iter().filter_map(own).collect(), looks: Vec::new() }
    }

    /// Looks once more than was submitted: that may have been answered before the proofs were made.
    pub(super) fn again(self) -> Self {
        Self { looks: Vec::new(), ..self }
    }

    /// Deletes the proofs of earlier claims. Ours were made by the transaction `czxid`, which was applied
    /// before the look was sent. Returns those of ours that do not make us the holder: the node has the proof
    /// of a later claim, or the claim's node is that of another client.
    ///
    /// # Errors
    /// When the servers refuse that, when the session ended, or at the deadline.
    ///
    /// # Cancel safety
    /// Cancel safe.
    pub(super) async fn evict(mut self, czxid: i64, deadline: Instant) -> Result<Vec<String>, Unread> {
        if planted!(EarlierProofStays) || self.own.is_empty() {
            return Ok(Vec::new());
        }
        let evicted = timeout_at(deadline, async {
            let mut looked = Vec::with_capacity(self.own.len());
            for (count, look) in std::mem::take(&mut self.looks) {
                let own = &self.own[looked.len()..][..count];
                match listed(own, &look.await) {
                    Some(told) => looked.extend(told),
                    None => looked.extend(self.look_at(own).await?),
                }
            }
            let left = self.look_at(&self.own[looked.len()..]).await?;
            looked.extend(left);
            let mut superseded = Vec::new();
            for (own, (names, mut made_by)) in self.own.iter().zip(looked) {
                let is_newest = match self.evict_from(&own.proof, czxid, &names).await? {
                    Evicted::Later => false,
                    Evicted::Nothing => true,
                    Evicted::Earlier => {
                        // Their holders may have deleted our claim, which has the path that theirs had.
                        made_by = self.made_by(own).await?;
                        true
                    }
                };
                if !is_newest || made_by != Some(own.node.czxid) {
                    superseded.push(own.proof.clone());
                }
            }
            Ok(superseded)
        });
        evicted.await.unwrap_or(Err(Unread::Cause(Cause::Deadline)))
    }

    /// Looks one by one, at several at a time.
    async fn look_at(&self, own: &[Own]) -> Result<Vec<Looked>, Unread> {
        const AT_ONCE: usize = 64;
        let mut looked = Vec::with_capacity(own.len());
        for some in own.chunks(AT_ONCE) {
            let mut looks = Vec::with_capacity(some.len());
            for own in some {
                looks.push(self.look(own));
            }
            looked.extend(try_join_all(looks).await?);
        }
        Ok(looked)
    }

    async fn look(&self, own: &Own) -> Result<Looked, Unread> {
        let names = self.list(node_of(&own.proof)).await?;
        Ok((names, self.made_by(own).await?))
    }

    /// The transaction that made the node at the path of a claim; `None` when there is none.
    async fn made_by(&self, own: &Own) -> Result<Option<i64>, Unread> {
        let found = lookup::stat(self.generation, &own.node.path).await.map_err(Unread::Cause)?;
        Ok(found.map(|stat| stat.czxid))
    }

    async fn list(&self, node: &str) -> Result<Vec<String>, Unread> {
        let list = || Request::GetChildren2 { path: node.to_owned(), watch: false };
        match self.ask(list).await? {
            Ok(Response::Children { names, .. }) => Ok(names),
            Ok(_) => Err(Unread::Refused(Code::MARSHALLING_ERROR, node.to_owned())),
            // The node was deleted, and its children before it.
            Err(Code::NO_NODE) => Ok(Vec::new()),
            Err(code) => Err(Unread::Refused(code, node.to_owned())),
        }
    }

    async fn ask(&self, request: impl Fn() -> Request) -> Result<Result<Response, Code>, Unread> {
        match ask(self.generation, Lane::Call, request).await {
            Ok(reply) => Ok(reply.result),
            Err(stop) => Err(Unread::Cause(stop.into())),
        }
    }

    /// Deletes those of the proofs `names` that are earlier than our proof `own`.
    async fn evict_from(&self, own: &str, czxid: i64, names: &[String]) -> Result<Evicted, Unread> {
        let node = node_of(own);
        let is_own = |name: &&String| own.rsplit('/').next() == Some(name);
        let mut found = match names.iter().any(|name| is_own(&name)) {
            true => Evicted::Nothing,
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
        tracing::info!(%path, "deleting the proof of an earlier claim whose node was deleted by hand");
        // The name is used once: a repeated or late delete does no harm.
        let delete = || Request::Delete { path: path.clone(), version: -1 };
        match self.ask(delete).await? {
            Ok(_) | Err(Code::NO_NODE) => Ok(()),
            Err(code) => Err(Unread::Refused(code, parent(&path).unwrap_or("/").to_owned())),
        }
    }
}

/// The claimed node of the proof at this full path.
fn node_of(proof: &str) -> &str {
    parent(proof).unwrap_or("/")
}

/// What was looked for, if the servers told all of it.
fn listed(own: &[Own], outcome: &Outcome) -> Option<Vec<Looked>> {
    let Outcome::Reply(Reply { result: Ok(Response::Multi(results)), .. }) = outcome else { return None };
    let mut results = results.iter();
    let mut next = || {
        let names = match results.next()? {
            MultiResult::Children(names) => names.clone(),
            MultiResult::Failed(Code::NO_NODE) => Vec::new(),
            _ => return None,
        };
        let made_by = match results.next()? {
            MultiResult::Data { stat, .. } => Some(stat.czxid),
            MultiResult::Failed(Code::NO_NODE) => None,
            _ => return None,
        };
        Some((names, made_by))
    };
    own.iter().map(|_| next()).collect()
}
