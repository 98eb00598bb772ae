use super::acl::{self, Identity};
use super::database::Database;
use super::events::Events;
use super::node::Node;
use super::refusal::Notes;
use super::sessions::Sessions;
use super::tree::{self, Tree};
use super::watches::{Aspect, Watches};
use crate::Limits;
use docent_proto::{Acl, Code, MultiOp, MultiResult, Permissions, Request, Response};
use std::ops::Bound;

/// Answers a session's requests that change nothing but its watches.
pub(crate) struct Reader<'a> {
    pub(super) tree: &'a Tree,
    sessions: &'a Sessions,
    pub(super) watches: &'a mut Watches,
    pub(super) limits: &'a Limits,
    pub(super) session: i64,
    identities: &'a [Identity],
    pub(super) notes: Notes,
    /// Number of nodes and names that were visited one by one.
    pub(super) visits: usize,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(database: &'a mut Database, limits: &'a Limits, session: i64) -> Self {
        let Database { tree, sessions, watches, .. } = database;
        let identities = sessions.identities(session);
        Self { tree, sessions, watches, limits, session, identities, notes: Notes::default(), visits: 0 }
    }

    /// Answers a request. `events` must be sent before the answer.
    pub(crate) fn answer(&mut self, request: &Request, events: &mut Events) -> Result<Response, Code> {
        match request {
            Request::Exists { path, watch } => {
                if path.contains('\0') {
                    return Err(Code::BAD_ARGUMENTS);
                }
                // A watch may be set on a missing node, to wait for its creation.
                self.watch(Aspect::Data, path, *watch)?;
                self.node(path).map(|node| Response::Stat(node.stat()))
            }
            Request::GetData { path, watch } => {
                let node = self.readable(path)?;
                self.admit_reply(weight(node, false))?;
                let response = Response::Data { data: node.data.clone(), stat: node.stat() };
                self.watch(Aspect::Data, path, *watch)?;
                Ok(response)
            }
            Request::GetChildren { path, watch } | Request::GetChildren2 { path, watch } => {
                let node = self.readable(path)?;
                let with_stat = matches!(request, Request::GetChildren2 { .. });
                let names = self.listed(&node.children)?;
                let response = Response::Children { names, stat: with_stat.then(|| node.stat()) };
                self.watch(Aspect::Children, path, *watch)?;
                Ok(response)
            }
            Request::GetAcl { path } => self.access(path),
            Request::MultiRead(ops) => self.multi_read(ops),
            Request::GetEphemerals { prefix } => self.ephemerals(prefix).map(Response::Ephemerals),
            Request::GetAllChildrenNumber { path } => {
                self.readable(path)?;
                let (mut count, visits) = self.tree.count_below(path);
                self.visits += visits;
                if planted!(ChildrenCountedAlone) {
                    count = i32::try_from(self.node(path)?.children.len()).unwrap_or(i32::MAX);
                }
                Ok(Response::Count(count))
            }
            Request::WhoAmI => Ok(Response::Clients(self.identities.iter().map(Identity::client).collect())),
            Request::CheckWatches { path, kind } => self.check_watches(path, *kind),
            Request::RemoveWatches { path, kind } => self.remove_watches(path, *kind),
            Request::AddWatch { path, mode } => self.add_watch(path, *mode),
            Request::SetWatches(watches) => self.set_watches(watches, &[], &[], events),
            Request::SetWatches2 { once, persistent, recursive } => {
                self.set_watches(once, persistent, recursive, events)
            }
            _ => Err(Code::UNIMPLEMENTED),
        }
    }

    fn access(&self, path: &str) -> Result<Response, Code> {
        let node = self.node(path)?;
        acl::check(&node.acl, Permissions::READ | Permissions::ADMIN, self.identities)?;
        let is_admin = acl::check(&node.acl, Permissions::ADMIN, self.identities).is_ok();
        let shown = |entry: &Acl| match (is_admin, &*entry.scheme, entry.id.split_once(':')) {
            (false, "digest", Some((user, _))) => Acl { id: format!("{user}:x").into(), ..entry.clone() },
            _ => entry.clone(),
        };
        Ok(Response::Acl { acl: node.acl.iter().map(shown).collect(), stat: node.stat() })
    }

    /// Returns the session's ephemeral nodes whose paths start with `prefix`.
    fn ephemerals(&mut self, prefix: &str) -> Result<Vec<String>, Code> {
        let trimmed = prefix.trim_matches(|c| c <= ' ');
        let prefix = if matches!(trimmed, "" | "/") { "" } else { prefix };
        let from = (Bound::Included(prefix), Bound::Unbounded);
        let oldest = || self.sessions.iter().next().map(|(id, _)| id);
        let session = if planted!(EphemeralsOfAnother) { oldest() } else { Some(self.session) };
        let all = session.and_then(|id| self.sessions.get(id)).into_iter();
        let behind = all.flat_map(|session| session.ephemerals.range::<str, _>(from));
        self.listed(behind.take_while(|path| path.starts_with(prefix)))
    }

    /// Returns the names for a reply, if the reply is not too long.
    fn listed<'n>(
        &mut self,
        names: impl IntoIterator<Item = &'n String, IntoIter: Clone>,
    ) -> Result<Vec<String>, Code> {
        let names = names.into_iter();
        let (count, bytes) =
            names.clone().fold((0, 0), |(n, bytes), name| (n + 1, bytes + name_weight(name)));
        self.visits += count;
        self.admit_reply(bytes)?;
        Ok(names.cloned().collect())
    }

    /// Checks that a reply may have this many bytes.
    fn admit_reply(&mut self, bytes: usize) -> Result<(), Code> {
        self.notes.admit("reply_bytes", bytes, self.limits.longest_reply())
    }

    /// Reads several nodes. Each operation succeeds or fails on its own.
    fn multi_read(&mut self, ops: &[MultiOp]) -> Result<Response, Code> {
        let mut results = Vec::with_capacity(ops.len());
        let mut bytes = 0;
        for op in ops {
            let (path, is_listing) = match op {
                MultiOp::GetData { path } => (path, false),
                MultiOp::GetChildren { path } => (path, true),
                _ => return Err(Code::MARSHALLING_ERROR),
            };
            let node = self.readable(path);
            bytes += node.map_or(RESULT, |node| weight(node, is_listing));
            self.visits += node.map_or(0, |node| if is_listing { node.children.len() } else { 0 });
            self.admit_reply(bytes)?;
            results.push(match node {
                Ok(node) if is_listing => MultiResult::Children(node.children.iter().cloned().collect()),
                Ok(node) => MultiResult::Data { data: node.data.clone(), stat: node.stat().into() },
                Err(code) => MultiResult::Failed(code),
            });
        }
        Ok(Response::Multi(results))
    }

    fn node(&self, path: &str) -> Result<&'a Node, Code> {
        self.tree.get(path).ok_or(Code::NO_NODE)
    }

    fn readable(&self, path: &str) -> Result<&'a Node, Code> {
        let node = self.node(path)?;
        acl::check(&node.acl, Permissions::READ, self.identities)?;
        Ok(node)
    }
}

/// Bytes of a result of a multi-read, without data and names.
pub(super) const RESULT: usize = 81;

/// Returns the bytes that the data of a node, or the names of its children, take up in a multi-read.
pub(super) fn weight(node: &Node, is_listing: bool) -> usize {
    RESULT
        + match is_listing {
            true => node.children.iter().map(|name| name_weight(name)).sum(),
            false => tree::size(node.data.as_ref()),
        }
}

/// Returns the bytes that a name takes up while a reply is built.
pub(super) fn name_weight(name: &str) -> usize {
    32 + name.len()
}
