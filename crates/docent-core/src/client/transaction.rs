use super::commit::Exact;
use super::{Client, commit};
use crate::error::{Error, ErrorKind};
use crate::guard::{HoldState, LostReason, Unsettled};
use crate::node::{CreateMode, Created, Stat};
use crate::operation::{Attempts, Idempotency, unexpected};
use crate::session::Lane;
use bytes::Bytes;
use docent_proto::{Code, Create, MultiOp, MultiResult, Request, Response};
use std::fmt;
use std::sync::Arc;

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
    /// Guards that it is bound to: all must hold, and the first operations check their nodes.
    held: Vec<Arc<HoldState>>,
    ops: Vec<MultiOp>,
    /// Error of the first operation that was added with a bad argument.
    invalid: Option<Error>,
}

/// The result of one operation of a committed transaction, in the order they were added.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum TransactionResult {
    /// A node was created.
    Created(Created),
    /// Data was set.
    Set(Stat),
    /// A node was deleted.
    Deleted,
    /// A check held.
    Checked,
}

/// Proof and results of an exact transaction that was applied.
#[derive(Debug)]
pub(crate) struct Committed {
    /// Results of its operations; `None` when the reply was lost.
    pub(crate) results: Option<Vec<TransactionResult>>,
    /// The stat of another node that was set in the same transaction.
    pub(crate) marker: Stat,
}

impl Transaction {
    pub(crate) fn new(client: Client) -> Self {
        Self { client, held: Vec::new(), ops: Vec::new(), invalid: None }
    }

    /// A transaction that is applied only while all of `held` hold; they are of one session, or one is lost.
    pub(crate) fn held(client: Client, held: impl IntoIterator<Item = Arc<HoldState>>) -> Self {
        let held: Vec<_> = held.into_iter().collect();
        let ops = checks(&held);
        Self { client, held, ops, invalid: None }
    }

    /// True when it was prepared by `client` or a clone: then its paths are in the same namespace, at the
    /// same servers.
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

    /// Creates a node. Parents must exist.
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

    /// Sets a node's data, if it has `version`; `None` for any.
    pub fn set(self, path: &str, data: impl Into<Bytes>, version: impl Into<Option<i32>>) -> Self {
        let (full, data, version) = (self.full(path), data.into(), wire(version.into()));
        self.add(full, |path| MultiOp::SetData { path, data: Some(data), version })
    }

    /// Deletes a node, if it has `version`; `None` for any.
    pub fn delete(self, path: &str, version: impl Into<Option<i32>>) -> Self {
        let (full, version) = (self.full(path), wire(version.into()));
        self.add(full, |path| MultiOp::Delete { path, version })
    }

    /// Checks that a node exists and has `version`; `None` for any.
    pub fn check(self, path: &str, version: impl Into<Option<i32>>) -> Self {
        let (full, version) = (self.full(path), wire(version.into()));
        self.add(full, |path| MultiOp::Check { path, version })
    }

    /// Applies the operations, all or none, and returns their results in order.
    ///
    /// # Errors
    /// That of the operation that failed, with its path: then nothing was applied. On a guard's transaction
    /// `Lost` when the guard does not hold any more. `OutcomeUnknown` when the reply was lost. `InvalidInput`
    /// for an empty transaction or one with a bad path, `TooLarge` when all together exceed the servers'
    /// limit: then nothing was sent.
    ///
    /// # Cancel safety
    /// This method is *not* cancel safe: the operations may have been applied.
    pub async fn commit(self) -> Result<Vec<TransactionResult>, Error> {
        if self.held.iter().any(|held| held.node.shares_path()) {
            // Exactly, because the path of a claim is used again: a plain one that is applied late would be
            // checked against the next claim's node (decision 8).
            return match Box::pin(self.commit_marked()).await?.results {
                Some(results) => Ok(results),
                None => {
                    Err(Error::new(ErrorKind::OutcomeUnknown, "transaction").because("the results were lost"))
                }
            };
        }
        Unsettled::new(&self.held).during(self.commit_plainly()).await
    }

    async fn commit_plainly(mut self) -> Result<Vec<TransactionResult>, Error> {
        let guard_checks = self.check_input()?;
        let results = match self.held.is_empty() {
            true => Box::pin(self.commit_anywhere()).await?,
            false => Box::pin(self.commit_held()).await?,
        };
        self.results(results, guard_checks)
    }

    /// As [`commit`](Self::commit), exactly once: when the reply is lost, it is found out whether the
    /// operations were applied, and they are sent again if not. Costs one write more in the same request, to
    /// a node of this session below `/_docent/markers`. Returns `None` when they were applied but the reply
    /// with their results was lost.
    ///
    /// # Errors
    /// As [`commit`](Self::commit); `OutcomeUnknown` only when the session ended, or the deadline passed,
    /// before it could be found out.
    ///
    /// # Cancel safety
    /// This method is *not* cancel safe: the operations may have been applied.
    pub async fn commit_exactly(self) -> Result<Option<Vec<TransactionResult>>, Error> {
        Ok(Box::pin(self.commit_marked()).await?.results)
    }

    /// As [`commit_exactly`](Self::commit_exactly), and says when it was applied, also if the reply was lost.
    pub(crate) async fn commit_marked(self) -> Result<Committed, Error> {
        Unsettled::new(&self.held).during(self.commit_marked_once()).await
    }

    async fn commit_marked_once(mut self) -> Result<Committed, Error> {
        let guard_checks = self.check_input()?;
        let client = self.client.clone();
        let path = self.path();
        let mut attempts = client.attempts("transaction", &path, Idempotency::Once);
        are_held(&self.held, &attempts)?;
        let bound = self.held.first().map(|held| &held.generation);
        let commit = Box::pin(commit::commit(&mut attempts, &self.ops, bound, &self.held));
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

    /// Deletes the nodes by which `ending` are held, of which there is one at least and which are of one
    /// session, and `nodes`; and applies the operations, all or none and exactly once, in that session or
    /// not at all.
    ///
    /// # Errors
    /// `Lost` when one of the nodes is gone, or a guard that the transaction is bound to does not hold any
    /// more; else as [`commit_exactly`](Self::commit_exactly).
    pub(crate) async fn commit_ending(
        self,
        operation: &'static str,
        ending: &[Arc<HoldState>],
        nodes: &[String],
    ) -> Result<Option<Vec<TransactionResult>>, Error> {
        Unsettled::new(&self.held).during(self.commit_ending_once(operation, ending, nodes)).await
    }

    async fn commit_ending_once(
        mut self,
        operation: &'static str,
        ending: &[Arc<HoldState>],
        nodes: &[String],
    ) -> Result<Option<Vec<TransactionResult>>, Error> {
        let deletes = self.bind_to_end_of(ending, nodes)?;
        let skip = self.held.len() + deletes;
        let (client, generation) = (self.client.clone(), &ending[0].generation);
        let path = client.shared().namespace.relative(self.ops[0].path());
        let mut attempts = client.attempts(operation, &path, Idempotency::Once);
        are_held(&self.held, &attempts)?;
        let lost = |attempts: &Attempts<'_>, reason| attempts.error(ErrorKind::Lost(reason));
        if self.held.iter().any(|held| held.generation.number != generation.number) {
            // Those of the older session are lost, or about to be.
            return Err(lost(&attempts, LostReason::SessionAbandoned));
        }
        let all: Vec<_> = ending.iter().chain(&self.held).cloned().collect();
        match Box::pin(commit::commit(&mut attempts, &self.ops, Some(generation), &all)).await {
            // It ended before anything was sent.
            Err(error) if error.kind() == ErrorKind::SessionChanged => {
                Err(lost(&attempts, generation.lost_reason()))
            }
            Err(error) => Err(error),
            Ok(Exact::Applied(results, _)) => results.map(|results| self.results(results, skip)).transpose(),
            Ok(Exact::Failed(index, Code::NO_NODE)) if (self.held.len()..skip).contains(&index) => {
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
        let wanted = self.ops.split_off(self.held.len());
        // Nodes that are deleted here need no check as well: the delete fails where a node is gone.
        self.held.retain(|held| !ending.iter().any(|ending| Arc::ptr_eq(held, ending)));
        self.ops = checks(&self.held);
        let mut paths: Vec<_> = ending.iter().map(|held| held.path().to_owned()).collect();
        for node in nodes {
            paths.push(self.full(node)?);
        }
        let deletes = paths.len();
        self.ops.extend(paths.into_iter().map(|path| MultiOp::Delete { path, version: -1 }));
        self.ops.extend(wanted);
        Ok(deletes)
    }

    /// Checks all arguments; returns the number of operations that are the guards' and not the caller's.
    fn check_input(&mut self) -> Result<usize, Error> {
        if let Some(error) = self.invalid.take() {
            return Err(error);
        }
        let guard_checks = self.held.len();
        if self.ops.len() == guard_checks {
            return Err(Error::invalid_input("transaction", "a transaction needs at least one operation"));
        }
        Ok(guard_checks)
    }

    /// The path of the caller's first operation, as it was given, for errors about the whole transaction.
    fn path(&self) -> String {
        self.client.shared().namespace.relative(self.ops[self.held.len()].path())
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
        let generation = &self.held[0].generation;
        loop {
            are_held(&self.held, &attempts)?;
            commit::confirm(&mut attempts, generation, &self.held).await?;
            let request = Request::Multi(self.ops.clone());
            let outcome = generation.session.submit(request, Lane::Call).by(attempts.deadline).await;
            match attempts.next(generation, outcome).await? {
                Some(Ok(Response::Multi(results))) => {
                    return match first_failed(&results) {
                        Some((index, code)) => Err(self.failed(index, code, &attempts)),
                        None => Ok(results),
                    };
                }
                Some(Ok(other)) => return Err(unexpected("transaction", &other)),
                Some(Err(code)) => return Err(Error::from_code(code, "transaction").at(&path)),
                None => {}
            }
        }
    }

    /// The error of an operation that was refused. The first ones check the guards' nodes.
    fn failed(&self, index: usize, code: Code, attempts: &Attempts<'_>) -> Error {
        if let (Some(held), Code::NO_NODE) = (self.held.get(index), code) {
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
        if let Some((index, code)) = first_failed(&results) {
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

/// The permission that an operation needs.
fn needed(op: &MultiOp) -> &'static str {
    match op {
        MultiOp::Create(_) => "needs CREATE on the parent",
        MultiOp::Delete { .. } => "needs DELETE on the parent",
        MultiOp::SetData { .. } => "needs WRITE",
        _ => "needs READ",
    }
}

/// Checks of the nodes by which guards hold.
fn checks(held: &[Arc<HoldState>]) -> Vec<MultiOp> {
    held.iter().map(|held| MultiOp::Check { path: held.path().to_owned(), version: -1 }).collect()
}

fn are_held(held: &[Arc<HoldState>], attempts: &Attempts<'_>) -> Result<(), Error> {
    held.iter().try_for_each(|held| held.check()).map_err(|reason| attempts.error(ErrorKind::Lost(reason)))
}

/// The operation that was refused, and why.
fn first_failed(results: &[MultiResult]) -> Option<(usize, Code)> {
    results.iter().enumerate().find_map(|(index, result)| match result {
        MultiResult::Failed(code) if *code != Code::OK => Some((index, *code)),
        _ => None,
    })
}

/// A version as the wire holds it.
pub(crate) fn wire(version: Option<i32>) -> i32 {
    version.unwrap_or(-1)
}
