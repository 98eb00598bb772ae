use super::Client;
use super::commit::{self, Exact, lost_before_reply, while_held};
use crate::cleanup::{Near, OwnedNode, children};
use crate::error::{Error, ErrorKind};
use crate::guard::{HoldState, LostReason};
use crate::node::{CreateMode, Created, Stat, is_proof};
use crate::operation::{Attempts, Idempotency, unexpected};
use crate::session::{Cause, Lane, Outcome, Pending};
use bytes::Bytes;
use docent_proto::{Code, Create, MultiOp, MultiResult, Request, Response};
use std::fmt;
use std::sync::Arc;
use tokio::time::{Instant, timeout_at};

/// Several writes that are applied together or not at all.
///
/// ```no_run
/// # async fn example(client: docent_core::Client) -> Result<(), docent_core::Error> {
/// client
///     .transaction()
///     .check("/config", 3)
///     .set("/config", "new", None)
///     .delete("/config/old", None)
///     .commit()
///     .await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
#[must_use = "a transaction does nothing until it is committed"]
pub struct Transaction {
    client: Client,
    /// Guards that the transaction is bound to. All must hold, and the first operations check their nodes.
    held: Vec<Arc<HoldState>>,
    ops: Vec<MultiOp>,
    /// Number of operations that check guards and were not added by the caller.
    guard_checks: usize,
    /// Full path near which a marker may be created, instead of near the operations' paths.
    near: Option<String>,
    /// Error of the first operation that was added with an invalid argument.
    invalid: Option<Error>,
}

/// The result of one operation of a committed transaction; results are in the order of the operations.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum TransactionResult {
    /// A node was created.
    Created(Created),
    /// Data was set.
    Set(Stat),
    /// A node was deleted.
    Deleted,
    /// A check succeeded.
    Checked,
}

/// Proof and results of an exact transaction that was applied.
#[derive(Debug)]
pub(crate) struct Committed {
    /// Results of its operations; `None` if the reply was lost.
    pub(crate) results: Option<Vec<TransactionResult>>,
    /// The stat of another node that was set in the same transaction.
    pub(crate) marker: Stat,
}

impl Transaction {
    pub(crate) fn new(client: Client) -> Self {
        Self::held(client, [])
    }

    /// Creates a transaction that is applied only while all of `held` hold. They belong to one session, or
    /// one of them is lost.
    pub(crate) fn held(client: Client, held: impl IntoIterator<Item = Arc<HoldState>>) -> Self {
        let held: Vec<_> = held.into_iter().collect();
        let ops = checks(&held);
        Self { client, held, guard_checks: ops.len(), ops, near: None, invalid: None }
    }

    /// Returns the same transaction, with a marker that is not created below `path`, which is about to be
    /// deleted.
    pub(super) fn marked_outside(self, path: &str) -> Self {
        Self { near: Some(self.client.full(path)), ..self }
    }

    /// Returns the nodes near which a marker may be created.
    fn place(&self) -> Near<'_> {
        self.near.as_deref().map_or(Near::Ops(&self.ops), Near::Path)
    }

    /// Returns true if the transaction was prepared by `client` or a clone, so that its paths are in the same
    /// namespace at the same servers.
    pub(crate) fn is_of(&self, client: &Client) -> bool {
        Arc::ptr_eq(self.client.shared(), client.shared())
    }

    fn add(mut self, path: Result<String, Error>, op: impl FnOnce(String) -> MultiOp) -> Self {
        match path {
            Ok(path) => self.ops.push(op(path)),
            Err(error) => self.invalid = self.invalid.or(Some(error)),
        }
        self
    }

    fn full(&self, path: &str) -> Result<String, Error> {
        self.client.shared().namespace.full("transaction", path)
    }

    /// Adds the creation of a node. Parents must exist.
    pub fn create(self, path: &str, data: impl Into<Bytes>, mode: CreateMode) -> Self {
        let (wire_mode, ttl) = mode.to_proto();
        let full = match mode.bad_ttl() {
            Some(ttl) => {
                let detail = format!("time to live {ttl:?} must be from 1 ms to 2^40 ms");
                Err(Error::invalid_input("transaction", detail).at(path))
            }
            None if wire_mode.is_sequential() => {
                self.client.shared().namespace.full_sequential("transaction", path)
            }
            None => self.full(path),
        };
        let (shared, data) = (Arc::clone(self.client.shared()), data.into());
        self.add(full, |path| {
            let acl = shared.acl(&path);
            MultiOp::Create(Create::new(path, data, acl, wire_mode, ttl))
        })
    }

    /// Adds a write of a node's data, on condition that the node has `version`; `None` matches any version.
    pub fn set(self, path: &str, data: impl Into<Bytes>, version: impl Into<Option<i32>>) -> Self {
        let (full, data, version) = (self.full(path), data.into(), wire(version.into()));
        self.add(full, |path| MultiOp::SetData { path, data: Some(data), version })
    }

    /// Adds the deletion of a node, on condition that the node has `version`; `None` matches any version.
    pub fn delete(self, path: &str, version: impl Into<Option<i32>>) -> Self {
        let (full, version) = (self.full(path), wire(version.into()));
        self.add(full, |path| MultiOp::Delete { path, version })
    }

    /// Adds a check that a node exists and has `version`; `None` matches any version.
    pub fn check(self, path: &str, version: impl Into<Option<i32>>) -> Self {
        let (full, version) = (self.full(path), wire(version.into()));
        self.add(full, |path| MultiOp::Check { path, version })
    }

    /// Applies the operations, all or none, and returns their results in order.
    ///
    /// # Errors
    /// The error of the operation that failed, with its path; then nothing was applied. `OutcomeUnknown` if
    /// the reply was lost. `InvalidInput` for an empty transaction or one with an invalid path, and
    /// `TooLarge` if the operations together exceed the servers' limit; then nothing was sent.
    ///
    /// A guard's transaction ends as soon as the guard is lost. The error is `Lost` if the transaction was
    /// not sent and never will be, and `OutcomeUnknown` if it was sent and not answered.
    ///
    /// # Cancel safety
    /// This method is *not* cancel safe: the operations may have been applied.
    pub async fn commit(self) -> Result<Vec<TransactionResult>, Error> {
        counted(nodes_of(&self.held), self.commit_plainly()).await
    }

    async fn commit_plainly(mut self) -> Result<Vec<TransactionResult>, Error> {
        let guard_checks = self.check_input()?;
        let results = match self.held.is_empty() {
            true => Box::pin(self.commit_anywhere()).await?,
            false => Box::pin(self.commit_held()).await?,
        };
        self.results(results, guard_checks)
    }

    /// Like [`commit`](Self::commit), but exactly once: if the reply is lost, the client finds out whether
    /// the operations were applied, and sends them again if not. This costs one more write in the same
    /// request, to one of the session's own nodes in a folder named `_docent`. Returns `None` if the
    /// operations were applied but the reply with their results was lost.
    ///
    /// # Errors
    /// The errors of [`commit`](Self::commit). `OutcomeUnknown` is returned only if the session ended, the
    /// deadline passed, or a guard that the transaction is bound to was lost before the outcome was known.
    /// Once the session has a link again or has ended, a transaction that was not applied by then is never
    /// applied.
    ///
    /// # Cancel safety
    /// This method is *not* cancel safe: the operations may have been applied.
    pub async fn commit_exactly(self) -> Result<Option<Vec<TransactionResult>>, Error> {
        Ok(Box::pin(self.commit_marked()).await?.results)
    }

    /// Like [`commit_exactly`](Self::commit_exactly), and also returns when the transaction was applied, even
    /// if the reply was lost.
    pub(crate) async fn commit_marked(self) -> Result<Committed, Error> {
        counted(nodes_of(&self.held), self.commit_marked_once()).await
    }

    async fn commit_marked_once(mut self) -> Result<Committed, Error> {
        let guard_checks = self.check_input()?;
        let client = self.client.clone();
        let path = self.path();
        let mut attempts = client.attempts("transaction", &path, Idempotency::Once);
        are_held(&self.held, &attempts)?;
        let bound = self.held.first().map(|held| &held.generation);
        let commit = Box::pin(commit::commit(&mut attempts, &self.ops, self.place(), bound, &self.held));
        let done = client.observed("transaction", &path, commit).await;
        if let (Err(error), Some(generation)) = (&done, bound)
            && error.kind() == ErrorKind::SessionChanged
        {
            are_held(&self.held, &attempts)?;
            return Err(attempts.error(ErrorKind::Lost(generation.lost_reason())));
        }
        match done? {
            Exact::Applied(results, marker) => {
                let results = results.map(|results| self.results(results, guard_checks)).transpose()?;
                Ok(Committed { results, marker: marker.into() })
            }
            Exact::Failed(index, code) => Err(self.failed(index, code, &attempts)),
        }
    }

    /// Deletes the nodes by which `ending` are held, and `nodes`, and applies the operations. All of this
    /// happens exactly once or not at all, in the session of `ending`, which has at least one entry and
    /// belongs to one session.
    ///
    /// # Errors
    /// `Lost` if one of the nodes was deleted, or if a guard that the transaction is bound to no longer
    /// holds; otherwise the errors of [`commit_exactly`](Self::commit_exactly).
    pub(crate) async fn commit_ending(
        self,
        operation: &'static str,
        ending: &[Arc<HoldState>],
        nodes: &[String],
    ) -> Result<Option<Vec<TransactionResult>>, Error> {
        counted(nodes_of(&self.held), self.commit_ending_once(operation, ending, nodes)).await
    }

    async fn commit_ending_once(
        mut self,
        operation: &'static str,
        ending: &[Arc<HoldState>],
        nodes: &[String],
    ) -> Result<Option<Vec<TransactionResult>>, Error> {
        let deletes = self.bind_to_end_of(ending, nodes)?;
        let guard_checks = self.guard_checks;
        let skip = guard_checks + deletes;
        let (client, generation) = (self.client.clone(), &ending[0].generation);
        let path = client.shared().namespace.relative(self.ops[0].path());
        let mut attempts = client.attempts(operation, &path, Idempotency::Once);
        are_held(&self.held, &attempts)?;
        let lost = |attempts: &Attempts<'_>, reason| attempts.error(ErrorKind::Lost(reason));
        if self.held.iter().any(|held| held.generation.number != generation.number) {
            // The guards of the older session are lost, or about to be.
            return Err(lost(&attempts, LostReason::SessionAbandoned));
        }
        let all: Vec<_> = ending.iter().chain(&self.held).cloned().collect();
        let commit = commit::commit(&mut attempts, &self.ops, self.place(), Some(generation), &all);
        match Box::pin(commit).await {
            // The session ended before anything was sent.
            Err(error) if error.kind() == ErrorKind::SessionChanged => {
                Err(lost(&attempts, generation.lost_reason()))
            }
            Err(error) => Err(error),
            Ok(Exact::Applied(results, _)) => results.map(|results| self.results(results, skip)).transpose(),
            Ok(Exact::Failed(index, Code::NO_NODE | Code::BAD_VERSION))
                if (guard_checks..skip).contains(&index) =>
            {
                Err(lost(&attempts, LostReason::NodeDeleted))
            }
            Ok(Exact::Failed(index, Code::NOT_EMPTY))
                if while_held(&all, has_later_claim(ending, self.ops[index].path(), attempts.deadline))
                    .await
                    .unwrap_or(true) =>
            {
                Err(lost(&attempts, LostReason::NodeDeleted))
            }
            Ok(Exact::Failed(index, code)) => Err(self.failed(index, code, &attempts)),
        }
    }

    /// Adds the deletes of the nodes of `ending` and of `nodes`, before the caller's operations. Returns
    /// their number.
    fn bind_to_end_of(&mut self, ending: &[Arc<HoldState>], nodes: &[String]) -> Result<usize, Error> {
        if let Some(error) = self.invalid.take() {
            return Err(error);
        }
        // Nodes that are deleted here need no check, because the delete fails if a node does not exist.
        self.held.retain(|held| !ending.iter().any(|ending| Arc::ptr_eq(held, ending)));
        let wanted = self.take_ops();
        let mut deletes: Vec<_> = ending.iter().flat_map(|held| held.node.deletes()).collect();
        for node in nodes {
            deletes.push(MultiOp::Delete { path: self.full(node)?, version: -1 });
        }
        let count = deletes.len();
        self.ops.extend(deletes);
        self.ops.extend(wanted);
        Ok(count)
    }

    /// Takes out the caller's operations, and rebuilds the guards' checks for their current state: a claim
    /// may have been handed out since the transaction was prepared.
    fn take_ops(&mut self) -> Vec<MultiOp> {
        let wanted = self.ops.split_off(self.guard_checks);
        self.ops = checks(&self.held);
        self.guard_checks = self.ops.len();
        wanted
    }

    /// Returns the guard that the operation with this index checks.
    fn guard_of(&self, index: usize) -> Option<&Arc<HoldState>> {
        let checked = self.held.iter().flat_map(|held| held.node.checks().map(move |_| held));
        checked.take(index + 1).nth(index)
    }

    /// Validates all arguments. Returns the number of operations that check guards and were not added by the
    /// caller.
    fn check_input(&mut self) -> Result<usize, Error> {
        if let Some(error) = self.invalid.take() {
            return Err(error);
        }
        let wanted = self.take_ops();
        if wanted.is_empty() {
            return Err(Error::invalid_input("transaction", "a transaction needs at least one operation"));
        }
        self.ops.extend(wanted);
        Ok(self.guard_checks)
    }

    /// Returns the path of the caller's first operation, as given, for errors about the whole transaction.
    fn path(&self) -> String {
        self.client.shared().namespace.relative(self.ops[self.guard_checks].path())
    }

    async fn commit_anywhere(&mut self) -> Result<Vec<MultiResult>, Error> {
        let request = || Request::Multi(self.ops.clone());
        match self.client.write("transaction", &self.path(), &request).await? {
            Response::Multi(results) => Ok(results),
            other => Err(unexpected("transaction", &other)),
        }
    }

    /// Sends the operations in the guards' session or not at all.
    async fn commit_held(&self) -> Result<Vec<MultiResult>, Error> {
        let path = self.path();
        let mut attempts = self.client.attempts("transaction", &path, Idempotency::Once);
        let (generation, mut sent) = (&self.held[0].generation, Pending::taken());
        let answer = match while_held(&self.held, self.send_held(&mut attempts, &mut sent)).await {
            Ok(answer) => answer?,
            Err(reason) => {
                let may_be_applied = sent.give_up(generation.ended().is_some()).await;
                return Err(lost_before_reply(&attempts, reason, may_be_applied));
            }
        };
        match answer {
            Ok(Response::Multi(results)) => match MultiResult::first_failure(&results) {
                Some((index, code)) => Err(self.failed(index, code, &attempts)),
                None => Ok(results),
            },
            Ok(other) => Err(unexpected("transaction", &other)),
            Err(code) => Err(attempts.code(code)),
        }
    }

    /// Returns the reply to the operations. `sent` is the request whose outcome is not known.
    async fn send_held(
        &self,
        attempts: &mut Attempts<'_>,
        sent: &mut Pending,
    ) -> Result<Result<Response, Code>, Error> {
        let generation = &self.held[0].generation;
        loop {
            are_held(&self.held, attempts)?;
            *sent = generation.session.submit(Request::Multi(self.ops.clone()), Lane::Call);
            let outcome = match sent.by(attempts.deadline).await {
                Outcome::Unknown(Cause::LinkLost) => {
                    let request = Request::Multi(self.ops.clone());
                    let too_large = generation.session.too_large_for_servers(&request);
                    Outcome::Unknown(too_large.unwrap_or(Cause::LinkLost))
                }
                outcome => outcome,
            };
            if let Some(answer) = attempts.next(generation, outcome).await? {
                return Ok(answer);
            }
        }
    }

    /// Returns the error of an operation that was refused. The first operations check the guards' nodes.
    fn failed(&self, index: usize, code: Code, attempts: &Attempts<'_>) -> Error {
        if let (Some(held), Code::NO_NODE | Code::BAD_VERSION) = (self.guard_of(index), code) {
            let reason = held.mark_lost(LostReason::NodeDeleted);
            return attempts.error(ErrorKind::Lost(reason));
        }
        self.refused(index, code)
    }

    fn refused(&self, index: usize, code: Code) -> Error {
        let Some(op) = self.ops.get(index) else { return Error::from_code(code, "transaction") };
        let path = self.client.shared().namespace.relative(op.path());
        let error = Error::from_code(code, "transaction").at(&path);
        if code == Code::NO_AUTH { error.because(needed(op)) } else { error }
    }

    fn results(&self, results: Vec<MultiResult>, skip: usize) -> Result<Vec<TransactionResult>, Error> {
        let namespace = &self.client.shared().namespace;
        if let Some((index, code)) = MultiResult::first_failure(&results) {
            return Err(self.refused(index, code));
        }
        let results = results.into_iter().skip(skip).map(|result| match result {
            MultiResult::Created { path, stat } => Ok(TransactionResult::Created(Created {
                path: namespace.relative(&path),
                stat: stat.map(|stat| *stat).unwrap_or_default().into(),
            })),
            MultiResult::Set(stat) => Ok(TransactionResult::Set((*stat).into())),
            MultiResult::Deleted => Ok(TransactionResult::Deleted),
            MultiResult::Checked => Ok(TransactionResult::Checked),
            other => Err(unexpected("transaction", &Response::Multi(vec![other]))),
        });
        results.collect()
    }
}

// Payloads and access control lists are not printed.
impl fmt::Debug for Transaction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let paths: Vec<_> = self.ops.iter().map(MultiOp::path).collect();
        f.debug_struct("Transaction").field("paths", &paths).field("held", &self.held).finish_non_exhaustive()
    }
}

/// Returns the permission that an operation needs.
fn needed(op: &MultiOp) -> &'static str {
    match op {
        MultiOp::Create(_) => "needs CREATE on the parent",
        MultiOp::Delete { .. } => "needs DELETE on the parent",
        MultiOp::SetData { .. } => "needs WRITE",
        _ => "needs READ",
    }
}

/// Returns true if `node`, which was claimed by `ending`, has the proof of a later claim. The servers refuse
/// to delete a node that has a child.
async fn has_later_claim(ending: &[Arc<HoldState>], node: &str, deadline: Instant) -> bool {
    let is_own = |child: &String| ending.iter().any(|held| held.node.proof() == Some(child));
    let is_rival = |child: &String| child.rsplit('/').next().is_some_and(is_proof) && !is_own(child);
    match timeout_at(deadline, children(&ending[0].generation, node)).await {
        Ok(Ok(children)) => children.iter().any(is_rival),
        // The check failed, so the error of the delete is all that is known.
        Ok(Err(_)) | Err(_) => false,
    }
}

/// Returns checks of the nodes by which guards hold.
fn checks(held: &[Arc<HoldState>]) -> Vec<MultiOp> {
    if planted!(TransactionUnchecked) {
        return Vec::new();
    }
    held.iter().flat_map(|held| held.node.checks()).collect()
}

fn nodes_of(held: &[Arc<HoldState>]) -> Vec<Arc<OwnedNode>> {
    held.iter().map(|held| Arc::clone(&held.node)).collect()
}

/// Returns the outcome of a `write` that is refused once one of `nodes` was deleted. The nodes count the
/// write until its outcome is known, or permanently if this future is dropped.
async fn counted<T>(
    nodes: Vec<Arc<OwnedNode>>,
    write: impl Future<Output = Result<T, Error>>,
) -> Result<T, Error> {
    nodes.iter().for_each(|node| node.begin_write());
    let done = write.await;
    if done.as_ref().err().is_none_or(|error| !error.may_have_applied()) {
        nodes.iter().for_each(|node| node.end_write());
    }
    done
}

fn are_held(held: &[Arc<HoldState>], attempts: &Attempts<'_>) -> Result<(), Error> {
    held.iter().try_for_each(|held| held.check()).map_err(|reason| attempts.error(ErrorKind::Lost(reason)))
}

/// Returns a version in its wire format.
pub(crate) fn wire(version: Option<i32>) -> i32 {
    version.unwrap_or(-1)
}
