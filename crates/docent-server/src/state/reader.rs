use super::acl::{self, Identity};
use super::database::Database;
use super::event::Event;
use super::node::Node;
use super::tree::{self, Tree};
use super::watches::{Aspect, Watches};
use crate::Limits;
use docent_proto::{Acl, Code, EventKind, MultiOp, MultiResult, Permissions, Request, Response};

/// Answers requests of a session that change nothing but its watches.
pub(crate) struct Reader<'a> {
    tree: &'a Tree,
    watches: &'a mut Watches,
    limits: &'a Limits,
    session: i64,
    identities: &'a [Identity],
}

impl<'a> Reader<'a> {
    pub(crate) fn new(database: &'a mut Database, limits: &'a Limits, session: i64) -> Self {
        let Database { tree, sessions, watches, .. } = database;
        Self { tree, watches, limits, session, identities: sessions.identities(session) }
    }

    /// Answers a request. `events` are due before the answer.
    pub(crate) fn answer(&mut self, request: &Request, events: &mut Vec<Event>) -> Result<Response, Code> {
        match request {
            Request::Exists { path, watch } => {
                if path.contains('\0') {
                    return Err(Code::BAD_ARGUMENTS);
                }
                // The watch stays on a missing node: it is how one waits for its creation.
                self.watch(Aspect::Data, path, *watch)?;
                self.node(path).map(|node| Response::Stat(node.stat()))
            }
            Request::GetData { path, watch } => {
                let node = self.readable(path)?;
                let response = Response::Data { data: node.data.clone(), stat: node.stat() };
                self.watch(Aspect::Data, path, *watch)?;
                Ok(response)
            }
            Request::GetChildren { path, watch } | Request::GetChildren2 { path, watch } => {
                let node = self.readable(path)?;
                let with_stat = matches!(request, Request::GetChildren2 { .. });
                let names = node.children.iter().cloned().collect();
                let response = Response::Children { names, stat: with_stat.then(|| node.stat()) };
                self.watch(Aspect::Children, path, *watch)?;
                Ok(response)
            }
            Request::GetAcl { path } => self.access(path),
            Request::MultiRead(ops) => self.multi_read(ops),
            Request::RemoveWatches { path, kind } => match self.watches.remove(self.session, path, *kind) {
                true => Ok(Response::Empty),
                false => Err(Code::NO_WATCHER),
            },
            Request::SetWatches(watches) => self.set_watches(watches, events),
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

    /// Each operation succeeds or fails on its own.
    fn multi_read(&self, ops: &[MultiOp]) -> Result<Response, Code> {
        let mut results = Vec::with_capacity(ops.len());
        let mut bytes = 0;
        for op in ops {
            let result = match op {
                MultiOp::GetData { path } => self
                    .readable(path)
                    .map(|node| MultiResult::Data { data: node.data.clone(), stat: node.stat().into() }),
                MultiOp::GetChildren { path } => self
                    .readable(path)
                    .map(|node| MultiResult::Children(node.children.iter().cloned().collect())),
                _ => return Err(Code::MARSHALLING_ERROR),
            };
            let result = result.unwrap_or_else(MultiResult::Failed);
            bytes += weight(&result);
            if bytes > self.limits.reply_bytes {
                return Err(Code::QUOTA_EXCEEDED);
            }
            results.push(result);
        }
        Ok(Response::Multi(results))
    }

    /// Sets watches again. A watch whose node changed since the client last looked fires at once and is not
    /// set.
    fn set_watches(
        &mut self,
        watches: &docent_proto::Watches,
        events: &mut Vec<Event>,
    ) -> Result<Response, Code> {
        let session = self.session;
        let added = watches.data.len() + watches.exist.len() + watches.child.len();
        if self.watches.count_of(session).saturating_add(added) > self.limits.watches_per_connection {
            return Err(Code::QUOTA_EXCEEDED);
        }
        let since = watches.relative_zxid;
        for path in &watches.data {
            match self.tree.get(path) {
                None => events.push(Event::late(session, EventKind::Deleted, path)),
                Some(node) if node.mzxid > since => {
                    events.push(Event::late(session, EventKind::DataChanged, path));
                }
                Some(_) => self.watches.add(session, Aspect::Data, path),
            }
        }
        for path in &watches.exist {
            match self.tree.get(path) {
                Some(_) => events.push(Event::late(session, EventKind::Created, path)),
                None => self.watches.add(session, Aspect::Data, path),
            }
        }
        for path in &watches.child {
            match self.tree.get(path) {
                None => events.push(Event::late(session, EventKind::Deleted, path)),
                Some(node) if node.pzxid > since => {
                    events.push(Event::late(session, EventKind::ChildrenChanged, path));
                }
                Some(_) => self.watches.add(session, Aspect::Children, path),
            }
        }
        Ok(Response::Empty)
    }

    fn watch(&mut self, aspect: Aspect, path: &str, wanted: bool) -> Result<(), Code> {
        let session = self.session;
        if !wanted || self.watches.has(session, aspect, path) {
            return Ok(());
        }
        if self.watches.count_of(session) >= self.limits.watches_per_connection {
            return Err(Code::QUOTA_EXCEEDED);
        }
        self.watches.add(session, aspect, path);
        Ok(())
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

/// Number of bytes, roughly, that a result takes up in the reply.
fn weight(result: &MultiResult) -> usize {
    const HEADER_AND_STAT: usize = 80;
    HEADER_AND_STAT
        + match result {
            MultiResult::Data { data, .. } => tree::size(data.as_ref()),
            MultiResult::Children(names) => names.iter().map(|name| name.len() + 4).sum(),
            _ => 0,
        }
}
