//! Requests of a cache to the servers, and handling of their answers.

use super::CacheTask;
use super::node_watch::NodeWatch;
use crate::cache::children::ChildrenEvent;
use crate::cache::reads::{Read, ReadKind};
use crate::error::Error;
use crate::node::{Node, is_own_name};
use crate::session::abilities::Ability;
use crate::session::{Cause, Lane, Outcome, Reply, Watch, watch_requests};
use crate::time::Backoff;
use bytes::Bytes;
use docent_proto::{Code, MultiOp, MultiResult, Request, Response, Stat};
use std::sync::Arc;
use tokio::time::Instant;

impl CacheTask {
    /// Sends the wanted reads while there is room.
    pub(super) fn send_requests(&mut self) {
        while self.up
            && !self.held
            && self.busy_until.is_none()
            && self.in_flight.has_room()
            && let Some(read) = self.nodes.next(self.max_together())
        {
            self.send(read);
        }
    }

    fn send(&mut self, read: Read) {
        let full = |key: &Arc<str>| self.nodes.keys().full(key);
        let request = match &read {
            Read::One { key, kind, watch } => {
                let (path, watch) = (full(key), *watch);
                match kind {
                    ReadKind::Names => Request::GetChildren2 { path, watch },
                    ReadKind::Data if self.options.without_data => Request::Exists { path, watch },
                    ReadKind::Data => Request::GetData { path, watch },
                }
            }
            Read::Several(keys) => {
                Request::MultiRead(keys.iter().map(|key| MultiOp::GetData { path: full(key) }).collect())
            }
            Read::Watch { keys, since } => {
                let paths: Vec<_> = keys.iter().map(full).collect();
                let mut keys = keys.iter();
                for request in watch_requests(*since, paths, self.shared.config.max_request) {
                    let Request::SetWatches(watches) = &request else { continue };
                    let keys = keys.by_ref().take(watches.data.len()).cloned().collect();
                    self.submit(Read::Watch { keys, since: *since }, request);
                }
                return;
            }
            Read::Root => Request::Exists { path: self.nodes.keys().full_root().to_owned(), watch: true },
        };
        self.submit(read, request);
    }

    fn submit(&mut self, read: Read, request: Request) {
        let pending = self.attachment.generation.session.submit(request, Lane::Call);
        self.in_flight.push(read, pending);
    }

    /// Maximum number of nodes in one read. Servers cannot return the stats of several nodes without their
    /// data.
    fn max_together(&self) -> usize {
        if self.options.without_data || self.shared.abilities.lacks(Ability::MultiReads) {
            1
        } else {
            self.batch
        }
    }

    /// Halves the number of nodes in one read. A reply that is larger than this client accepts ends the link,
    /// but so do other causes. Therefore a read that was lost with its link is retried with fewer nodes.
    pub(super) fn smaller_batches(&mut self) {
        self.batch = (self.batch / 2).max(1);
    }

    pub(super) fn answered(&mut self, read: Read, outcome: Outcome) {
        let Reply { result, watch, watches, zxid } = match outcome.answer() {
            Ok(reply) => reply,
            Err(cause) => return self.unanswered(&read, cause),
        };
        self.nodes.as_of(zxid);
        match read {
            Read::One { key, kind, .. } => {
                self.busy_backoff = Backoff::endless();
                self.one(&key, kind, result, watch);
            }
            Read::Several(keys) => self.several(&keys, result),
            Read::Watch { keys, .. } => self.armed(&keys, watches),
            Read::Root => self.root_awaited(&result, watch),
        }
    }

    fn unanswered(&mut self, read: &Read, cause: Cause) {
        match cause {
            // The next session starts with a sync.
            Cause::Ended(_) => self.up = false,
            Cause::LinkLost => {
                self.lost_batch |= matches!(read, Read::Several(_));
                self.pause();
            }
            // `TooManyEphemerals` does not occur for reads, only for creates of ephemeral nodes.
            Cause::QueueFull | Cause::Deadline | Cause::TooManyEphemerals { .. } => self.pause(),
            Cause::TooLarge { size, limit } => {
                let error = || Error::too_large("watch", size, limit);
                match read {
                    Read::One { key, kind, .. } => return self.refused(key, *kind, error()),
                    Read::Root => return self.root_refused(error()),
                    Read::Several(_) => self.smaller_batches(),
                    Read::Watch { .. } => {}
                }
                self.pause();
            }
        }
        match read {
            Read::One { key, kind, .. } => self.nodes.unanswered(key, *kind),
            Read::Several(keys) | Read::Watch { keys, .. } => {
                keys.iter().for_each(|key| self.nodes.unanswered(key, ReadKind::Data));
            }
            Read::Root => self.enqueue_root(),
        }
    }

    /// Sends nothing until a pause has passed.
    fn pause(&mut self) {
        if self.busy_until.is_none() {
            self.busy_until = Some(Instant::now() + self.busy_backoff.pause());
        }
    }

    fn enqueue_root(&mut self) {
        let root = Arc::clone(self.nodes.keys().root());
        self.nodes.enqueue(&root, self.nodes.root_read_kind());
    }

    /// Processes the answer to a read of one node.
    fn one(
        &mut self,
        key: &Arc<str>,
        kind: ReadKind,
        result: Result<Response, Code>,
        watch: Option<Box<Watch>>,
    ) {
        if !self.nodes.is_current(key) {
            return;
        }
        if result.is_ok() {
            self.keep(key, kind, watch);
        }
        match (kind, result) {
            (ReadKind::Data, Ok(Response::Data { data, stat })) => self.read(key, data.as_ref(), stat),
            (ReadKind::Data, Ok(Response::Stat(stat))) => self.read(key, None, stat),
            (ReadKind::Names, Ok(Response::Children { names, stat: Some(stat) })) => {
                self.listed(key, names, stat);
            }
            (kind, Err(Code::NO_NODE)) => self.deleted(key, kind),
            (kind, Err(code)) => self.refused(key, kind, Error::from_code(code, "watch")),
            (kind, Ok(_)) => self.refused(key, kind, Error::from_code(Code::MARSHALLING_ERROR, "watch")),
        }
    }

    fn keep(&mut self, key: &Arc<str>, kind: ReadKind, watch: Option<Box<Watch>>) {
        if let Some(watch) = watch
            && self.nodes.watched(key, kind)
        {
            self.watches.push(NodeWatch::new(key, kind, *watch));
        }
    }

    /// Processes the answer to a read of several nodes.
    fn several(&mut self, keys: &[Arc<str>], result: Result<Response, Code>) {
        match result {
            Ok(Response::Multi(results)) if results.len() == keys.len() => {
                for (key, result) in keys.iter().zip(results) {
                    match result {
                        _ if !self.nodes.is_current(key) => {}
                        MultiResult::Data { data, stat } => self.read(key, data.as_ref(), *stat),
                        MultiResult::Failed(Code::NO_NODE) => self.deleted(key, ReadKind::Data),
                        MultiResult::Failed(code) => {
                            self.refused(key, ReadKind::Data, Error::from_code(code, "watch"));
                        }
                        _ => {
                            let error = Error::from_code(Code::MARSHALLING_ERROR, "watch");
                            self.refused(key, ReadKind::Data, error);
                        }
                    }
                }
            }
            refused => {
                if refused == Err(Code::UNIMPLEMENTED) {
                    self.shared.learn_no_multi_reads();
                } else {
                    // The nodes were probably too large for one reply.
                    self.smaller_batches();
                }
                keys.iter().for_each(|key| self.nodes.unanswered(key, ReadKind::Data));
            }
        }
    }

    /// Records the watches of nodes, some of which may have fired already.
    fn armed(&mut self, keys: &[Arc<str>], watches: Vec<Watch>) {
        if watches.len() != keys.len() {
            return keys.iter().for_each(|key| self.nodes.not_armed(key));
        }
        for (key, watch) in keys.iter().zip(watches) {
            if self.nodes.is_current(key) && self.nodes.armed(key) {
                self.watches.push(NodeWatch::new(key, ReadKind::Data, watch));
            }
        }
    }

    fn read(&mut self, key: &Arc<str>, data: Option<&Bytes>, stat: Stat) {
        if self.nodes.read(key, (stat.czxid, stat.mzxid), stat.ephemeral_owner == 0) {
            // Copy the data: a slice of the reply would keep the whole reply in memory.
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
        let deleted = self.nodes.listed(key, names);
        self.events.extend(deleted.into_iter().map(ChildrenEvent::Delete));
    }

    fn deleted(&mut self, key: &Arc<str>, kind: ReadKind) {
        let deleted = self.nodes.deleted(key, kind);
        self.events.extend(deleted.into_iter().map(ChildrenEvent::Delete));
        if key == self.nodes.keys().root() {
            self.folder = None;
            if self.persistent.is_none() {
                self.send(Read::Root);
            }
        }
    }

    /// Processes the answer to the wait for the cache's own node.
    fn root_awaited(&mut self, result: &Result<Response, Code>, watch: Option<Box<Watch>>) {
        let root = Arc::clone(self.nodes.keys().root());
        match result {
            Err(Code::NO_NODE) if watch.is_some() => self.keep(&root, self.nodes.root_read_kind(), watch),
            // The node was created in between.
            Ok(_) | Err(Code::NO_NODE) => self.enqueue_root(),
            Err(code) => self.root_refused(Error::from_code(*code, "watch")),
        }
    }

    fn root_refused(&mut self, error: Error) {
        let root = Arc::clone(self.nodes.keys().root());
        self.refused(&root, self.nodes.root_read_kind(), error);
    }

    /// Records that a node cannot be read. The read is retried after a pause.
    fn refused(&mut self, key: &Arc<str>, kind: ReadKind, error: Error) {
        let keys = self.nodes.keys();
        let is_root = key == keys.root();
        let error = match (is_root, keys.are_names()) {
            (true, _) => error.at(&self.path),
            (false, true) => error.at(&format!("{}/{key}", self.path.trim_end_matches('/'))),
            (false, false) => error.at(key),
        };
        let is_own_child = !(is_root && keys.are_names());
        // Event: A cache cannot read one of its nodes. It retries after a pause.
        tracing::debug!(target: "docent::cache", client = %self.shared.label, path = %self.shared.namespace.join(&self.path), error = %self.shared.namespace.located(&error), "cannot read a cached node; retrying");
        if self.nodes.refused(key, kind) {
            // Start with short pauses again, because a new node is refused.
            self.read_backoff = Backoff::endless();
            self.retry_at = None;
            if is_own_child {
                self.events.push(ChildrenEvent::Unreadable(Arc::clone(key), error.clone()));
            }
        }
        if is_root {
            self.syncing = true;
            self.store.failed(&error);
        }
        self.refused.push((Arc::clone(key), kind));
        let mut pause = || self.read_backoff.pause();
        self.retry_at.get_or_insert_with(|| Instant::now() + pause());
    }
}
