//! Requests of a cache of a tree to the servers, and handling of their answers.

use super::super::children_event::ChildrenEvent;
use super::super::tree_nodes::Look;
use super::{Ask, TreeTask};
use crate::error::Error;
use crate::node::Node;
use crate::session::{Cause, Lane, Outcome, Reply, Watch};
use crate::watch::{LONGEST_PAUSE, patience};
use bytes::Bytes;
use docent_proto::{Code, Request, Response, Stat};
use futures_util::future::FutureExt;
use std::sync::Arc;
use tokio::time::Instant;

/// Most requests under way at a time.
const WINDOW: usize = 64;

impl TreeTask {
    /// Sends the wanted reads, as far as there is room.
    pub(super) fn ask(&mut self) {
        while self.up
            && !self.held
            && self.busy_until.is_none()
            && self.asked.len() < WINDOW
            && let Some((path, look, watch)) = self.nodes.next()
        {
            let full = self.shared.namespace.join(&path);
            let request = match look {
                Look::Names => Request::GetChildren2 { path: full, watch },
                Look::Data if self.options.without_data => Request::Exists { path: full, watch },
                Look::Data => Request::GetData { path: full, watch },
            };
            self.send(Ask::Look(path, look), request);
        }
    }

    fn send(&mut self, ask: Ask, request: Request) {
        let pending = self.attachment.generation.session.submit(request, Lane::Call);
        self.asked.push_back(pending.map(move |outcome| (ask, outcome)).boxed());
    }

    pub(super) fn answered(&mut self, ask: Ask, outcome: Outcome) {
        match (ask, outcome.answer()) {
            (Ask::Look(path, look), Ok(reply)) => self.looked(&path, look, reply),
            (Ask::Root, Ok(reply)) => self.root_awaited(reply),
            (ask, Err(cause)) => self.unanswered(ask, &cause),
        }
    }

    fn unanswered(&mut self, ask: Ask, cause: &Cause) {
        let (path, look) = match ask {
            Ask::Look(path, look) => (path, look),
            Ask::Root => (Arc::clone(&self.root), Look::Data),
        };
        match cause {
            // A sync comes with the next link or session.
            Cause::Ended(_) => self.up = false,
            Cause::LinkLost => {}
            Cause::QueueFull | Cause::Deadline | Cause::TooManyEphemerals { .. } => {
                self.busy_until = Some(Instant::now() + self.patience.next().unwrap_or(LONGEST_PAUSE));
                self.nodes.unanswered(&path, look);
            }
            Cause::TooLarge { size, limit } => {
                self.refused(&path, look, Error::too_large("watch", *size, *limit));
            }
        }
    }

    fn looked(&mut self, path: &Arc<str>, look: Look, reply: Reply) {
        let Reply { result, watch, .. } = reply;
        self.patience = patience();
        if !self.nodes.is_current(path) {
            return;
        }
        match (look, result) {
            (Look::Data, Ok(Response::Data { data, stat })) => {
                self.keep(path, look, watch);
                // A copy: a part of a reply would keep all of it in memory.
                self.read(path, data.map_or_else(Bytes::new, |data| Bytes::copy_from_slice(&data)), stat);
            }
            (Look::Data, Ok(Response::Stat(stat))) => {
                self.keep(path, look, watch);
                self.read(path, Bytes::new(), stat);
            }
            (Look::Names, Ok(Response::Children { names, .. })) => {
                self.keep(path, look, watch);
                self.listed(path, names);
            }
            (look, Err(Code::NO_NODE)) => self.gone(path, look),
            (look, Err(code)) => self.refused(path, look, Error::from_code(code, "watch")),
            (look, Ok(_)) => self.refused(path, look, Error::from_code(Code::MARSHALLING_ERROR, "watch")),
        }
    }

    fn keep(&mut self, path: &Arc<str>, look: Look, watch: Option<Box<Watch>>) {
        if let Some(watch) = watch
            && self.nodes.watched(path, look)
        {
            let path = Arc::clone(path);
            self.watches.push(watch.map(move |fired| (path, look, fired)).boxed());
        }
    }

    fn read(&mut self, path: &Arc<str>, data: Bytes, stat: Stat) {
        if self.nodes.read(path, (stat.czxid, stat.mzxid), stat.ephemeral_owner == 0) {
            let node = Arc::new(Node { data, stat: stat.into() });
            self.events.push(ChildrenEvent::Added(Arc::clone(path), node));
        }
    }

    fn listed(&mut self, path: &Arc<str>, names: Vec<String>) {
        let prefix = if &**path == "/" { "" } else { path };
        let paths = names.into_iter().map(|name| Arc::from(format!("{prefix}/{name}")));
        let paths = paths.filter(|path| self.options.selects(path)).collect();
        let gone = self.nodes.listed(path, paths);
        self.events.extend(gone.into_iter().map(ChildrenEvent::Delete));
    }

    fn gone(&mut self, path: &Arc<str>, look: Look) {
        let gone = self.nodes.gone(path, look);
        self.events.extend(gone.into_iter().map(ChildrenEvent::Delete));
        if *path == self.root && !self.persistent.is_set() {
            let full = self.shared.namespace.join(path);
            self.send(Ask::Root, Request::Exists { path: full, watch: true });
        }
    }

    /// Takes the answer to the wait for the node at the cache's path.
    fn root_awaited(&mut self, reply: Reply) {
        let root = Arc::clone(&self.root);
        match reply.result {
            Err(Code::NO_NODE) if reply.watch.is_some() => self.keep(&root, Look::Data, reply.watch),
            // It was created in between.
            Ok(_) | Err(Code::NO_NODE) => self.nodes.want(&root, Look::Data),
            Err(code) => self.refused(&root, Look::Data, Error::from_code(code, "watch")),
        }
    }

    /// Takes note that a node cannot be read. It is tried again after a pause.
    fn refused(&mut self, path: &Arc<str>, look: Look, error: Error) {
        let error = error.at(path);
        tracing::debug!(%path, ?look, %error, "cannot read a node");
        if self.nodes.refused(path, look) {
            self.mending = patience();
            self.events.push(ChildrenEvent::Unreadable(Arc::clone(path), error.clone()));
        }
        let again = || Instant::now() + self.mending.next().unwrap_or(LONGEST_PAUSE);
        if *path == self.root {
            // Everything is below it, and may be read for the first time then.
            self.store.failed(&error);
            self.syncing = true;
            self.sync_at.get_or_insert_with(again);
        } else {
            self.refused.push((Arc::clone(path), look));
            self.mend_at.get_or_insert_with(again);
        }
    }
}
