//! Requests of a cache to the servers, and handling of their answers.

use super::CacheTask;
use super::asked::Ask;
use super::node_watch::NodeWatch;
use crate::cache::children_event::ChildrenEvent;
use crate::cache::reads::{Look, Read};
use crate::error::Error;
use crate::node::{Node, is_own_name};
use crate::session::{Cause, Lane, Outcome, Reply, Watch, watch_requests};
use crate::watch::{LONGEST_PAUSE, patience};
use bytes::Bytes;
use docent_proto::{Code, MultiOp, MultiResult, Request, Response, Stat};
use std::sync::Arc;
use tokio::time::Instant;

impl CacheTask {
    /// Sends the wanted reads, as far as there is room.
    pub(super) fn ask(&mut self) {
        while self.up
            && !self.held
            && self.busy_until.is_none()
            && self.asked.has_room()
            && let Some(read) = self.nodes.next(self.most_together())
        {
            match read {
                Read::One { key, look, watch } => {
                    let path = self.nodes.keys().full(&key);
                    let request = match look {
                        Look::Names => Request::GetChildren2 { path, watch },
                        Look::Data if self.options.without_data => Request::Exists { path, watch },
                        Look::Data => Request::GetData { path, watch },
                    };
                    self.send(Ask::One(key, look), request);
                }
                Read::Several(keys) => {
                    let read = |key: &Arc<str>| MultiOp::GetData { path: self.nodes.keys().full(key) };
                    let request = Request::MultiRead(keys.iter().map(read).collect());
                    self.send(Ask::Several(keys), request);
                }
                Read::Watch { keys, since } => self.watch(keys, since),
            }
        }
    }

    /// Maximum number of nodes in one read. Servers do not read the stats of several nodes without their
    /// data.
    fn most_together(&self) -> usize {
        if self.options.without_data || self.shared.multi_reads.is_refused() { 1 } else { self.batch }
    }

    /// Sends requests for watches on nodes that are known as of `since`.
    fn watch(&mut self, keys: Vec<Arc<str>>, since: i64) {
        let paths: Vec<_> = keys.iter().map(|key| self.nodes.keys().full(key)).collect();
        let mut keys = keys.into_iter();
        for request in watch_requests(since, paths, self.shared.config.max_request) {
            let Request::SetWatches(watches) = &request else { continue };
            let keys = keys.by_ref().take(watches.data.len()).collect();
            self.send(Ask::Watch(keys), request);
        }
    }

    fn send(&mut self, ask: Ask, request: Request) {
        let pending = self.attachment.generation.session.submit(request, Lane::Call);
        self.asked.push(ask, pending);
    }

    /// Halves the number of nodes in one read. A reply that is larger than this client takes ends the link,
    /// as other causes do: so a read that was lost with its link is tried with fewer nodes.
    pub(super) fn smaller_batches(&mut self) {
        self.batch = (self.batch / 2).max(1);
    }

    pub(super) fn answered(&mut self, ask: Ask, outcome: Outcome) {
        let Reply { result, watch, watches, zxid } = match outcome.answer() {
            Ok(reply) => reply,
            Err(cause) => return self.unanswered(&ask, cause),
        };
        self.nodes.as_of(zxid);
        match ask {
            Ask::One(key, look) => {
                self.patience = patience();
                self.one(&key, look, result, watch);
            }
            Ask::Several(keys) => self.several(&keys, result),
            Ask::Watch(keys) => self.armed(&keys, watches),
            Ask::Root => self.root_awaited(&result, watch),
        }
    }

    fn unanswered(&mut self, ask: &Ask, cause: Cause) {
        match cause {
            // A sync comes with the next session.
            Cause::Ended(_) => self.up = false,
            Cause::LinkLost => {
                self.lost_batch |= matches!(ask, Ask::Several(_));
                self.pause();
            }
            // The last one is not for reads: only creates of ephemeral nodes end so.
            Cause::QueueFull | Cause::Deadline | Cause::TooManyEphemerals { .. } => self.pause(),
            Cause::TooLarge { size, limit } => {
                let error = || Error::too_large("watch", size, limit);
                match ask {
                    Ask::One(key, look) => return self.refused(key, *look, error()),
                    Ask::Root => return self.root_refused(error()),
                    Ask::Several(_) => self.smaller_batches(),
                    Ask::Watch(_) => {}
                }
                self.pause();
            }
        }
        match ask {
            Ask::One(key, look) => self.nodes.unanswered(key, *look),
            Ask::Several(keys) | Ask::Watch(keys) => {
                keys.iter().for_each(|key| self.nodes.unanswered(key, Look::Data));
            }
            Ask::Root => self.want_root(),
        }
    }

    /// Sends nothing for a while.
    fn pause(&mut self) {
        if self.busy_until.is_none() {
            self.busy_until = Some(Instant::now() + self.patience.next().unwrap_or(LONGEST_PAUSE));
        }
    }

    fn want_root(&mut self) {
        let root = Arc::clone(self.nodes.keys().root());
        self.nodes.want(&root, self.nodes.root_look());
    }

    /// Takes the answer to a read of one node.
    fn one(&mut self, key: &Arc<str>, look: Look, result: Result<Response, Code>, watch: Option<Box<Watch>>) {
        if !self.nodes.is_current(key) {
            return;
        }
        if result.is_ok() {
            self.keep(key, look, watch);
        }
        match (look, result) {
            (Look::Data, Ok(Response::Data { data, stat })) => self.read(key, data.as_ref(), stat),
            (Look::Data, Ok(Response::Stat(stat))) => self.read(key, None, stat),
            (Look::Names, Ok(Response::Children { names, stat: Some(stat) })) => {
                self.listed(key, names, stat);
            }
            (look, Err(Code::NO_NODE)) => self.gone(key, look),
            (look, Err(code)) => self.refused(key, look, Error::from_code(code, "watch")),
            (look, Ok(_)) => self.refused(key, look, Error::from_code(Code::MARSHALLING_ERROR, "watch")),
        }
    }

    fn keep(&mut self, key: &Arc<str>, look: Look, watch: Option<Box<Watch>>) {
        if let Some(watch) = watch
            && self.nodes.watched(key, look)
        {
            self.watches.push(NodeWatch::new(key, look, *watch));
        }
    }

    /// Takes the answer to a read of several nodes.
    fn several(&mut self, keys: &[Arc<str>], result: Result<Response, Code>) {
        match result {
            Ok(Response::Multi(results)) if results.len() == keys.len() => {
                self.shared.multi_reads.answered();
                for (key, result) in keys.iter().zip(results) {
                    match result {
                        _ if !self.nodes.is_current(key) => {}
                        MultiResult::Data { data, stat } => self.read(key, data.as_ref(), *stat),
                        MultiResult::Failed(Code::NO_NODE) => self.gone(key, Look::Data),
                        MultiResult::Failed(code) => {
                            self.refused(key, Look::Data, Error::from_code(code, "watch"));
                        }
                        _ => {
                            let error = Error::from_code(Code::MARSHALLING_ERROR, "watch");
                            self.refused(key, Look::Data, error);
                        }
                    }
                }
            }
            refused => {
                if refused == Err(Code::UNIMPLEMENTED) {
                    self.shared.multi_reads.refused();
                } else {
                    // Most likely the nodes were too large for one reply.
                    self.smaller_batches();
                }
                keys.iter().for_each(|key| self.nodes.unanswered(key, Look::Data));
            }
        }
    }

    /// Takes the watches of nodes, some of which may have fired already.
    fn armed(&mut self, keys: &[Arc<str>], watches: Vec<Watch>) {
        if watches.len() != keys.len() {
            return keys.iter().for_each(|key| self.nodes.not_armed(key));
        }
        for (key, watch) in keys.iter().zip(watches) {
            if self.nodes.is_current(key) && self.nodes.armed(key) {
                self.watches.push(NodeWatch::new(key, Look::Data, watch));
            }
        }
    }

    fn read(&mut self, key: &Arc<str>, data: Option<&Bytes>, stat: Stat) {
        if self.nodes.read(key, (stat.czxid, stat.mzxid), stat.ephemeral_owner == 0) {
            // A copy: a part of a reply would keep all of it in memory.
            let data = data.map_or_else(Bytes::new, |data| Bytes::copy_from_slice(data));
            let node = Arc::new(Node { data, stat: stat.into() });
            self.events.push(ChildrenEvent::Added(Arc::clone(key), node));
        }
    }

    fn listed(&mut self, key: &Arc<str>, mut names: Vec<String>, stat: Stat) {
        let keys = self.nodes.keys();
        if keys.are_names() {
            names.retain(|name| !is_own_name(name));
            self.folder = Some(stat.into());
        } else if self.options.select.is_some() {
            names.retain(|name| self.options.selects(&keys.child(key, name)));
        }
        let gone = self.nodes.listed(key, names);
        self.events.extend(gone.into_iter().map(ChildrenEvent::Delete));
    }

    fn gone(&mut self, key: &Arc<str>, look: Look) {
        let gone = self.nodes.gone(key, look);
        self.events.extend(gone.into_iter().map(ChildrenEvent::Delete));
        if key == self.nodes.keys().root() {
            self.folder = None;
            if !self.persistent.is_set() {
                let path = self.nodes.keys().full_root().to_owned();
                self.send(Ask::Root, Request::Exists { path, watch: true });
            }
        }
    }

    /// Takes the answer to the wait for the cache's own node.
    fn root_awaited(&mut self, result: &Result<Response, Code>, watch: Option<Box<Watch>>) {
        let root = Arc::clone(self.nodes.keys().root());
        match result {
            Err(Code::NO_NODE) if watch.is_some() => self.keep(&root, self.nodes.root_look(), watch),
            // It was created in between.
            Ok(_) | Err(Code::NO_NODE) => self.want_root(),
            Err(code) => self.root_refused(Error::from_code(*code, "watch")),
        }
    }

    fn root_refused(&mut self, error: Error) {
        let root = Arc::clone(self.nodes.keys().root());
        self.refused(&root, self.nodes.root_look(), error);
    }

    /// Records that a node cannot be read. It is tried again after a pause.
    fn refused(&mut self, key: &Arc<str>, look: Look, error: Error) {
        let keys = self.nodes.keys();
        let is_root = key == keys.root();
        let error = match (is_root, keys.are_names()) {
            (true, _) => error.at(&self.path),
            (false, true) => error.at(&format!("{}/{key}", self.path.trim_end_matches('/'))),
            (false, false) => error.at(key),
        };
        let is_own_child = !(is_root && keys.are_names());
        tracing::debug!(path = self.path, %error, "cannot read a node of a cache");
        if self.nodes.refused(key, look) {
            // Nodes that are refused for longer wait for longer.
            self.mending = patience();
            self.mend_at = None;
            if is_own_child {
                self.events.push(ChildrenEvent::Unreadable(Arc::clone(key), error.clone()));
            }
        }
        if is_root {
            self.syncing = true;
            self.store.failed(&error);
        }
        self.refused.push((Arc::clone(key), look));
        let mut pause = || self.mending.next().unwrap_or(LONGEST_PAUSE);
        self.mend_at.get_or_insert_with(|| Instant::now() + pause());
    }
}
