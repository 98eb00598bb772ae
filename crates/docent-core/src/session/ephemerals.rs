use crate::session::{Cause, Lane};
use docent_proto::{Code, CreateMode, MultiOp, MultiResult, Request, Response};
use std::collections::HashMap;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;

/// Most bytes of the paths of ephemeral nodes of one session. Its close is one transaction that lists them
/// all; servers with default settings write one of up to twice `jute.maxbuffer`, 2 MiB, that they can read
/// again. After a larger one none of them starts any more. This is a quarter of it: an operator may have set
/// the allowance of the second half to nothing.
pub(crate) const MOST_EPHEMERAL_BYTES: usize = 512 * 1024;

/// Part of them that claims leave to tickets and registrations: one in so many bytes.
const RESERVE: usize = 8;

/// Length of a string in that list, before its bytes.
const PREFIX: usize = 4;

/// Digits at the end of the path of a sequential node, which the server adds.
const NUMBER: usize = 10;

/// The ephemeral nodes of a session, counted by the bytes that their paths take when the session is closed.
#[derive(Debug)]
pub(in crate::session) struct Ephemerals {
    limit: usize,
    /// Nodes that exist, by the hashes of their paths.
    nodes: HashMap<u64, Box<str>>,
    /// Nodes to look for since a create was refused: somebody may have deleted them.
    doubted: Vec<Box<str>>,
    hasher: RandomState,
    there: usize,
    /// Bytes of creates that are under way.
    under_way: usize,
}

/// Change that a request makes to a session's ephemeral nodes once it is applied.
#[derive(Debug, Default)]
pub(in crate::session) enum Change {
    #[default]
    None,
    /// A node is made; its path takes this many bytes.
    Make(usize),
    /// A node of this hash is deleted.
    Delete(u64),
    /// None, but the answer tells whether the node of this hash is there.
    Look(u64),
    /// One for each operation of a multi.
    Each(Box<[Self]>),
}

impl Change {
    fn bytes(&self) -> usize {
        match self {
            Self::None | Self::Delete(_) | Self::Look(_) => 0,
            Self::Make(bytes) => *bytes,
            Self::Each(changes) => changes.iter().map(Self::bytes).sum(),
        }
    }
}

impl Ephemerals {
    pub(in crate::session) fn new(limit: usize) -> Self {
        let (nodes, hasher) = (HashMap::new(), RandomState::new());
        Self { limit, nodes, doubted: Vec::new(), hasher, there: 0, under_way: 0 }
    }

    /// Counts a request that is about to be sent.
    ///
    /// # Errors
    /// `TooManyEphemerals` when the nodes of a call would be too many. Deletes and markers, which core needs
    /// to clean up, are sent all the same (decision 11).
    pub(in crate::session) fn send(&mut self, request: &Request, lane: Lane) -> Result<Change, Cause> {
        let change = self.change(request);
        let bytes = change.bytes();
        let all = self.there + self.under_way + bytes;
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

    /// Takes note of the answer to a request that was sent.
    pub(in crate::session) fn answered(&mut self, change: Change, result: &Result<Response, Code>) {
        self.under_way = self.under_way.saturating_sub(change.bytes());
        match (change, result) {
            (Change::None, _) => {}
            (Change::Make(_), Ok(Response::Created { path, .. })) => self.made(path),
            (Change::Delete(hash), Ok(_) | Err(Code::NO_NODE)) | (Change::Look(hash), Err(Code::NO_NODE)) => {
                self.gone(hash);
            }
            (Change::Each(changes), Ok(Response::Multi(results))) => {
                let applied = !results.iter().any(|result| matches!(result, MultiResult::Failed(_)));
                for (change, result) in changes.iter().zip(results) {
                    match (change, result) {
                        (Change::Make(_), MultiResult::Created { path, .. }) => self.made(path),
                        (Change::Delete(hash), _) if applied => self.gone(*hash),
                        (Change::Delete(hash), MultiResult::Failed(Code::NO_NODE)) => self.gone(*hash),
                        _ => {}
                    }
                }
            }
            _ => {}
        }
    }

    /// Takes note that the answer to a request is lost.
    pub(in crate::session) fn unanswered(&mut self, change: &Change) {
        self.under_way = self.under_way.saturating_sub(change.bytes());
    }

    /// Takes note of a node that was made although no answer said so.
    pub(in crate::session) fn owns(&mut self, path: &str) {
        self.made(path);
    }

    /// The nodes that exist, as far as answers told.
    pub(in crate::session) fn paths(&self) -> Vec<String> {
        self.nodes.values().map(|path| path.clone().into()).collect()
    }

    /// Reads that show which nodes are there, after a create was refused: somebody may have deleted some, or
    /// the answer to a delete was lost. At most `most` of them; the others come next.
    pub(in crate::session) fn doubt(&mut self, most: usize) -> Vec<Request> {
        if self.doubted.is_empty() {
            self.doubted.extend(self.nodes.values().cloned());
        }
        let some = self.doubted.split_off(self.doubted.len().saturating_sub(most));
        some.into_iter().map(|path| Request::Exists { path: path.into(), watch: false }).collect()
    }

    /// Takes note that the link is gone, and with it the answers to all requests on it. Nodes that were made
    /// all the same are found, and [count](Self::owns) then, or are deleted.
    pub(in crate::session) fn link_lost(&mut self) {
        self.under_way = 0;
    }

    /// Takes note that somebody deleted a node.
    pub(in crate::session) fn deleted(&mut self, path: &str) {
        if !self.nodes.is_empty() {
            self.gone(self.hash(path));
        }
    }

    fn change(&self, request: &Request) -> Change {
        match request {
            Request::Create(create) if is_ephemeral(create.flags) => Change::Make(bytes(create)),
            Request::Delete { path, .. } => Change::Delete(self.hash(path)),
            Request::Exists { path, .. } if !self.nodes.is_empty() => Change::Look(self.hash(path)),
            Request::Multi(ops) => {
                let changes = || {
                    ops.iter().map(|op| match op {
                        MultiOp::Create(create) if is_ephemeral(create.flags) => Change::Make(bytes(create)),
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

    fn made(&mut self, path: &str) {
        if self.nodes.insert(self.hash(path), path.into()).is_none() {
            self.there += PREFIX + path.len();
        }
    }

    fn gone(&mut self, hash: u64) {
        if let Some(path) = self.nodes.remove(&hash) {
            self.there = self.there.saturating_sub(PREFIX + path.len());
        }
    }

    fn hash(&self, path: &str) -> u64 {
        self.hasher.hash_one(path)
    }
}

fn is_ephemeral(flags: i32) -> bool {
    CreateMode::from_flags(flags).is_some_and(CreateMode::is_ephemeral)
}

/// Bytes that the node will take, with the number that the server adds.
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

    fn made(path: &str) -> Result<Response, Code> {
        Ok(Response::Created { path: path.to_owned(), stat: None })
    }

    #[test]
    fn nodes_that_are_there_and_on_their_way_count_until_they_are_gone() {
        let mut nodes = Ephemerals::new(20);
        let one = nodes.send(&create("/aaaaa"), Lane::Call).unwrap();
        let two = nodes.send(&create("/bbbbb"), Lane::Call).unwrap();
        let refused = nodes.send(&create("/c"), Lane::Call).unwrap_err();
        assert_eq!(refused, Cause::TooManyEphemerals { bytes: 26, limit: 20 });
        assert!(nodes.send(&create("/c"), Lane::Cleanup).is_ok(), "what cleans up is not refused");
        nodes.link_lost();
        let one_again = nodes.send(&create("/aaaaa"), Lane::Call).unwrap();
        nodes.answered(one_again, &made("/aaaaa"));
        drop((one, two));
        let gone = nodes.send(&delete("/aaaaa"), Lane::Call).unwrap();
        assert!(nodes.send(&create("/bbbbbbb"), Lane::Call).is_err(), "it is there until it is gone");
        nodes.answered(gone, &Err(Code::NO_NODE));
        assert!(nodes.send(&create("/bbbbbbb"), Lane::Call).is_ok());
    }

    #[test]
    fn nodes_that_somebody_else_deleted_are_looked_for_once_creates_are_refused() {
        let mut nodes = Ephemerals::new(20);
        for path in ["/aaaaa", "/bbbbb"] {
            let made_one = nodes.send(&create(path), Lane::Call).unwrap();
            nodes.answered(made_one, &made(path));
        }
        assert!(nodes.send(&create("/ccccc"), Lane::Call).is_err());
        let looks: Vec<_> = (0..2).flat_map(|_| nodes.doubt(1)).collect();
        assert_eq!(looks.len(), 2);
        for look in looks {
            let change = nodes.send(&look, Lane::Cleanup).unwrap();
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
