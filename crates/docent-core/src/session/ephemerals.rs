use crate::session::{Cause, Lane};
use docent_proto::{Code, CreateMode, MultiOp, MultiResult, Request, Response};
use std::collections::HashMap;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;

/// Maximum total bytes of the paths of one session's ephemeral nodes. Closing a session is one transaction
/// that lists all of these paths. Servers with default settings write such a transaction up to twice
/// `jute.maxbuffer`, 2 MiB, and can still read it. After a larger transaction none of them can restart. The
/// limit is a quarter of that, because an operator may have reduced the allowance for the second half to
/// zero.
pub(crate) const MAX_EPHEMERAL_BYTES: usize = 512 * 1024;

/// Number of nodes checked at a time after a create was refused because there are too many.
pub(in crate::session) const MAX_DOUBTS: usize = 256;

/// Fraction of the limit that claims leave to tickets and registrations: one byte in this many.
const RESERVE: usize = 8;

/// Bytes of a string's length in that list, before its content.
const PREFIX: usize = 4;

/// Number of digits that the server appends to the path of a sequential node.
const NUMBER: usize = 10;

/// The ephemeral nodes of a session, measured by the bytes that their paths take when the session is closed.
#[derive(Debug)]
pub(in crate::session) struct Ephemerals {
    limit: usize,
    /// Nodes that exist, by the hashes of their paths.
    nodes: HashMap<u64, Box<str>>,
    /// Nodes to check since a create was refused, because a third party may have deleted them.
    doubted: Vec<Box<str>>,
    hasher: RandomState,
    existing: usize,
    /// Bytes of creates that are in flight.
    under_way: usize,
}

/// Change that a request makes to a session's ephemeral nodes once it is applied.
#[derive(Debug, Default)]
pub(in crate::session) enum Change {
    #[default]
    None,
    /// A node is created; its path takes this many bytes.
    Create(usize),
    /// A node with this hash is deleted.
    Delete(u64),
    /// No change, but the reply shows whether the node with this hash exists.
    Check(u64),
    /// One for each operation of a multi.
    Each(Box<[Self]>),
}

impl Change {
    fn bytes(&self) -> usize {
        match self {
            Self::None | Self::Delete(_) | Self::Check(_) => 0,
            Self::Create(bytes) => *bytes,
            Self::Each(changes) => changes.iter().map(Self::bytes).sum(),
        }
    }
}

impl Ephemerals {
    pub(in crate::session) fn new(limit: usize) -> Self {
        let (nodes, hasher) = (HashMap::new(), RandomState::new());
        Self { limit, nodes, doubted: Vec::new(), hasher, existing: 0, under_way: 0 }
    }

    /// Counts a request that is about to be sent.
    ///
    /// # Errors
    /// `TooManyEphemerals` if a call would create too many nodes. Deletes and markers, which core needs to
    /// clean up, are sent regardless (decision 11).
    pub(in crate::session) fn send(&mut self, request: &Request, lane: Lane) -> Result<Change, Cause> {
        let change = self.change(request);
        let bytes = change.bytes();
        let all = self.existing + self.under_way + bytes;
        let limit = match lane {
            Lane::Call => self.limit,
            Lane::Claim => self.limit - self.limit / RESERVE,
            Lane::Cleanup | Lane::Lease => usize::MAX,
        };
        if bytes > 0 && all > limit {
            return Err(Cause::TooManyEphemerals { bytes: all, limit });
        }
        self.under_way += bytes;
        Ok(change)
    }

    /// Records the reply to a request.
    pub(in crate::session) fn answered(&mut self, change: Change, result: &Result<Response, Code>) {
        self.under_way = self.under_way.saturating_sub(change.bytes());
        match (change, result) {
            (Change::None, _) => {}
            (Change::Create(_), Ok(Response::Created { path, .. })) => self.owns(path),
            (Change::Delete(hash), Ok(_) | Err(Code::NO_NODE))
            | (Change::Check(hash), Err(Code::NO_NODE)) => {
                self.removed(hash);
            }
            (Change::Each(changes), Ok(Response::Multi(results))) => {
                let applied = !results.iter().any(|result| matches!(result, MultiResult::Failed(_)));
                for (change, result) in changes.iter().zip(results) {
                    match (change, result) {
                        (Change::Create(_), MultiResult::Created { path, .. }) => self.owns(path),
                        (Change::Delete(hash), _) if applied => self.removed(*hash),
                        (Change::Delete(hash), MultiResult::Failed(Code::NO_NODE)) => self.removed(*hash),
                        _ => {}
                    }
                }
            }
            _ => {}
        }
    }

    /// Records that the reply to a request is lost.
    pub(in crate::session) fn unanswered(&mut self, change: &Change) {
        self.under_way = self.under_way.saturating_sub(change.bytes());
    }

    /// Returns the nodes that exist, as far as replies reported them.
    pub(in crate::session) fn paths(&self) -> Vec<String> {
        self.nodes.values().map(|path| path.clone().into()).collect()
    }

    /// Returns reads that check which nodes still exist, after a create was refused: a third party may have
    /// deleted some, or the reply to a delete was lost. Returns at most `max` reads; the next call returns
    /// more.
    pub(in crate::session) fn doubt(&mut self, max: usize) -> Vec<Request> {
        if self.doubted.is_empty() {
            self.doubted.extend(self.nodes.values().cloned());
        }
        let some = self.doubted.split_off(self.doubted.len().saturating_sub(max));
        some.into_iter().map(|path| Request::Exists { path: path.into(), watch: false }).collect()
    }

    /// Records that the link is lost, and with it the replies to all requests on it. Nodes that were created
    /// nevertheless are either found later and [counted](Self::owns), or deleted.
    pub(in crate::session) fn link_lost(&mut self) {
        self.under_way = 0;
    }

    /// Records that another client deleted a node.
    pub(in crate::session) fn deleted(&mut self, path: &str) {
        if !self.nodes.is_empty() {
            self.removed(self.hash(path));
        }
    }

    fn change(&self, request: &Request) -> Change {
        match request {
            Request::Create(create) if is_ephemeral(create.flags) => Change::Create(bytes(create)),
            Request::Delete { path, .. } => Change::Delete(self.hash(path)),
            Request::Exists { path, .. } if !self.nodes.is_empty() => Change::Check(self.hash(path)),
            Request::Multi(ops) => {
                let changes = || {
                    ops.iter().map(|op| match op {
                        MultiOp::Create(create) if is_ephemeral(create.flags) => {
                            Change::Create(bytes(create))
                        }
                        MultiOp::Delete { path, .. } => Change::Delete(self.hash(path)),
                        _ => Change::None,
                    })
                };
                match changes().all(|change| matches!(change, Change::None)) {
                    true => Change::None,
                    false => Change::Each(changes().collect()),
                }
            }
            _ => Change::None,
        }
    }

    /// Records a node that was created.
    pub(in crate::session) fn owns(&mut self, path: &str) {
        if self.nodes.insert(self.hash(path), path.into()).is_none() {
            self.existing += PREFIX + path.len();
        }
    }

    fn removed(&mut self, hash: u64) {
        if let Some(path) = self.nodes.remove(&hash) {
            self.existing = self.existing.saturating_sub(PREFIX + path.len());
        }
    }

    fn hash(&self, path: &str) -> u64 {
        self.hasher.hash_one(path)
    }
}

fn is_ephemeral(flags: i32) -> bool {
    CreateMode::from_flags(flags).is_some_and(CreateMode::is_ephemeral)
}

/// Returns the bytes that the node's path will take, including the number that the server appends.
fn bytes(create: &docent_proto::Create) -> usize {
    let is_sequential = CreateMode::from_flags(create.flags).is_some_and(CreateMode::is_sequential);
    PREFIX + create.path.len() + if is_sequential { NUMBER } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use docent_proto::Create;

    fn create(path: &str) -> Request {
        Request::Create(Create::new(
            path.to_owned(),
            Bytes::new(),
            docent_proto::Acl::open(),
            CreateMode::Ephemeral,
            0,
        ))
    }

    fn delete(path: &str) -> Request {
        Request::Delete { path: path.to_owned(), version: -1 }
    }

    fn created(path: &str) -> Result<Response, Code> {
        Ok(Response::Created { path: path.to_owned(), stat: None })
    }

    #[test]
    fn existing_nodes_and_creates_in_flight_count_until_they_are_deleted() {
        let mut nodes = Ephemerals::new(20);
        let one = nodes.send(&create("/aaaaa"), Lane::Call).unwrap();
        let two = nodes.send(&create("/bbbbb"), Lane::Call).unwrap();
        let refused = nodes.send(&create("/c"), Lane::Call).unwrap_err();
        assert_eq!(refused, Cause::TooManyEphemerals { bytes: 26, limit: 20 });
        assert!(nodes.send(&create("/c"), Lane::Cleanup).is_ok(), "cleanup requests are not refused");
        nodes.link_lost();
        let re_created = nodes.send(&create("/aaaaa"), Lane::Call).unwrap();
        nodes.answered(re_created, &created("/aaaaa"));
        drop((one, two));
        let deletion = nodes.send(&delete("/aaaaa"), Lane::Call).unwrap();
        assert!(nodes.send(&create("/bbbbbbb"), Lane::Call).is_err(), "the node still counts");
        nodes.answered(deletion, &Err(Code::NO_NODE));
        assert!(nodes.send(&create("/bbbbbbb"), Lane::Call).is_ok());
    }

    #[test]
    fn nodes_deleted_by_third_parties_are_checked_once_creates_are_refused() {
        let mut nodes = Ephemerals::new(20);
        for path in ["/aaaaa", "/bbbbb"] {
            let create = nodes.send(&create(path), Lane::Call).unwrap();
            nodes.answered(create, &created(path));
        }
        assert!(nodes.send(&create("/ccccc"), Lane::Call).is_err());
        let checks: Vec<_> = (0..2).flat_map(|_| nodes.doubt(1)).collect();
        assert_eq!(checks.len(), 2);
        for check in checks {
            let change = nodes.send(&check, Lane::Cleanup).unwrap();
            nodes.answered(change, &Err(Code::NO_NODE));
        }
        assert!(nodes.send(&create("/ccccc"), Lane::Call).is_ok());
    }

    #[test]
    fn a_multi_counts_only_what_was_applied() {
        let mut nodes = Ephemerals::new(20);
        let ops = |path: &str| match create(path) {
            Request::Create(create) => Request::Multi(vec![
                MultiOp::Check { path: "/".to_owned(), version: -1 },
                MultiOp::Create(create),
            ]),
            other => other,
        };
        let refused = nodes.send(&ops("/aaaaa"), Lane::Call).unwrap();
        let failed = [MultiResult::Failed(Code::NO_NODE), MultiResult::Failed(Code::RUNTIME_INCONSISTENCY)];
        nodes.answered(refused, &Ok(Response::Multi(failed.to_vec())));
        let applied = nodes.send(&ops("/bbbbb"), Lane::Call).unwrap();
        let results = [MultiResult::Checked, MultiResult::Created { path: "/bbbbb".to_owned(), stat: None }];
        nodes.answered(applied, &Ok(Response::Multi(results.to_vec())));
        assert!(nodes.send(&create("/ccccccc"), Lane::Call).is_err());
        nodes.deleted("/bbbbb");
        assert!(nodes.send(&create("/ccccccc"), Lane::Call).is_ok());
    }
}
