//! Requests of a cache of children to the servers, and handling of their answers.

use super::super::children_event::ChildrenEvent;
use super::super::read_queue::Read;
use super::asked::{Ask, Asked};
use super::child_watch::ChildWatch;
use super::{ChildrenTask, Listing};
use crate::error::Error;
use crate::node::{Node, is_own_name};
use crate::session::{Cause, Lane, Outcome, Reply, Watch, watch_requests};
use crate::watch::{LONGEST_PAUSE, patience};
use bytes::Bytes;
use docent_proto::{Code, MultiOp, MultiResult, Request, Response, Stat};
use std::sync::Arc;
use tokio::time::Instant;

impl ChildrenTask {
    /// Sends the wanted reads, as far as there is room.
    pub(super) fn ask(&mut self) {
        if !self.up || self.held || self.alarms.busy.is_some() {
            return;
        }
        if self.listing == Listing::Wanted {
            self.listing = Listing::Asked { again: false };
            let watch = !self.persistent.is_set();
            self.send(Ask::List, Request::GetChildren2 { path: self.full.clone(), watch });
        }
        let most = if self.shared.multi_reads.is_refused() { 1 } else { self.batch };
        while self.asked.has_room()
            && let Some(read) = self.work.next(most)
        {
            match read {
                Read::One { name, watch } => {
                    let path = self.child_path(&name);
                    self.send(Ask::One(name), Request::GetData { path, watch });
                }
                Read::Several(names) => {
                    let read = |name: &Arc<str>| MultiOp::GetData { path: self.child_path(name) };
                    let request = Request::MultiRead(names.iter().map(read).collect());
                    self.send(Ask::Several(names), request);
                }
                Read::Watch { names, since } => self.watch(names, since),
            }
        }
    }

    /// Asks for watches on children that are known as of `since`.
    fn watch(&mut self, names: Vec<Arc<str>>, since: i64) {
        let paths: Vec<_> = names.iter().map(|name| self.child_path(name)).collect();
        let mut names = names.into_iter();
        for request in watch_requests(since, paths, self.shared.config.max_request) {
            let Request::SetWatches(watches) = &request else { continue };
            let names = names.by_ref().take(watches.data.len()).collect();
            self.send(Ask::Watch(names), request);
        }
    }

    /// Takes the watches of children, some of which may have fired already.
    fn watched(&mut self, names: &[Arc<str>], watches: Vec<Watch>) {
        if watches.len() != names.len() {
            return names.iter().for_each(|name| self.work.unwatched(name));
        }
        for (name, watch) in names.iter().zip(watches) {
            if self.work.is_current(name) && self.work.armed(name) {
                self.watches.push(ChildWatch::new(name, watch));
            }
        }
    }

    /// Asks for the folder, which does not exist, with a watch for its creation.
    fn ask_for_folder(&mut self) {
        self.send(Ask::Folder, Request::Exists { path: self.full.clone(), watch: true });
    }

    fn send(&mut self, ask: Ask, request: Request) {
        let pending = self.attachment.generation.session.submit(request, Lane::Call);
        self.asked.push(ask, pending);
    }

    /// Takes back the requests under way, which will be sent again.
    pub(super) fn forget_asked(&mut self) {
        self.asked = Asked::default();
        self.work.forget_asked();
        if let Listing::Asked { .. } = self.listing {
            self.listing = Listing::Wanted;
        }
    }

    /// Halves the number of children in one read. A reply that is larger than this client takes ends the
    /// link, as other causes do: so a read that was lost with its link is tried with fewer children.
    pub(super) fn smaller_batches(&mut self) {
        self.batch = (self.batch / 2).max(1);
    }

    fn child_path(&self, name: &str) -> String {
        match self.full.as_str() {
            "/" => format!("/{name}"),
            full => format!("{full}/{name}"),
        }
    }

    pub(super) fn answered(&mut self, ask: Ask, outcome: Outcome) {
        let Reply { result, watch, watches, zxid } = match outcome.answer() {
            Ok(reply) => reply,
            Err(cause) => return self.unanswered(ask, cause),
        };
        self.work.as_of(zxid);
        match ask {
            Ask::Watch(names) => self.watched(&names, watches),
            Ask::List => self.listed(result, watch),
            Ask::Folder => self.folder_missing(&result, watch),
            Ask::One(name) => self.one(&name, result, watch),
            Ask::Several(names) => self.several(&names, result),
        }
    }

    fn unanswered(&mut self, ask: Ask, cause: Cause) {
        self.lost_batch |= matches!((&ask, cause), (Ask::Several(_), Cause::LinkLost));
        match cause {
            // The session is over: `News` of the next one follow.
            Cause::Ended(_) => self.up = false,
            Cause::LinkLost | Cause::QueueFull | Cause::Deadline => self.pause(),
            // Not for reads: only creates of ephemeral nodes end so.
            Cause::TooManyEphemerals { .. } => self.pause(),
            Cause::TooLarge { size, limit } => {
                let error = Error::too_large("watch", size, limit);
                match &ask {
                    Ask::List | Ask::Folder => return self.failed(error),
                    Ask::One(name) => return self.mark_unreadable(name, error),
                    Ask::Several(_) => self.smaller_batches(),
                    Ask::Watch(_) => {}
                }
                self.pause();
            }
        }
        self.unread(ask);
    }

    /// Asks nothing for a while.
    fn pause(&mut self) {
        if self.alarms.busy.is_none() {
            self.alarms.busy = Some(Instant::now() + self.patience.next().unwrap_or(LONGEST_PAUSE));
        }
    }

    fn unread(&mut self, ask: Ask) {
        match ask {
            Ask::List | Ask::Folder => self.listing = Listing::Wanted,
            Ask::One(name) => self.work.unanswered(&name),
            Ask::Several(names) | Ask::Watch(names) => {
                names.iter().for_each(|name| self.work.unanswered(name));
            }
        }
    }

    fn listed(&mut self, result: Result<Response, Code>, watch: Option<Box<Watch>>) {
        let (names, folder) = match result {
            Ok(Response::Children { mut names, stat: Some(stat) }) => {
                names.retain(|name| !is_own_name(name));
                (names, Some(stat))
            }
            Err(Code::NO_NODE) => (Vec::new(), None),
            Ok(_) => return self.refused(Code::MARSHALLING_ERROR),
            Err(code) => return self.refused(code),
        };
        self.patience = patience();
        self.store.listed();
        let again = self.listing == Listing::Asked { again: true };
        self.listing = if again { Listing::Wanted } else { Listing::Known };
        self.folder_watch = watch;
        let folder = folder.map(crate::node::Stat::from);
        if self.folder.map(|folder| folder.czxid) != folder.map(|folder| folder.czxid) {
            // Another folder: none of its children is one that is known.
            self.work.begin_sync();
        }
        self.folder = folder;
        let gone = self.work.listed(names);
        self.events.extend(gone.into_iter().map(ChildrenEvent::Delete));
        if folder.is_none() && !self.persistent.is_set() {
            self.listing = Listing::Asked { again: false };
            self.ask_for_folder();
        }
    }

    /// Takes the answer to the wait for a folder that did not exist when it was listed.
    fn folder_missing(&mut self, result: &Result<Response, Code>, watch: Option<Box<Watch>>) {
        match result {
            Err(Code::NO_NODE) if watch.is_some() => {
                self.folder_watch = watch;
                self.listing = Listing::Known;
            }
            // It was created between the listing and this answer.
            Ok(_) | Err(Code::NO_NODE) => self.listing = Listing::Wanted,
            Err(code) => self.refused(*code),
        }
    }

    /// The folder cannot be listed. It is tried again with a sync, because watches may be missing by then.
    fn refused(&mut self, code: Code) {
        self.failed(Error::from_code(code, "watch"));
    }

    fn failed(&mut self, error: Error) {
        let error = error.at(&self.path);
        tracing::debug!(path = self.path, %error, "cannot list children");
        self.listing = Listing::Refused;
        self.syncing = false;
        self.work.give_up_sync();
        self.store.failed(&error);
        self.alarms.sync = Some(Instant::now() + self.patience.next().unwrap_or(LONGEST_PAUSE));
    }

    fn one(&mut self, name: &Arc<str>, result: Result<Response, Code>, watch: Option<Box<Watch>>) {
        if let Some(watch) = watch
            && self.work.watched(name)
        {
            self.watches.push(ChildWatch::new(name, *watch));
        }
        self.one_read(name, result);
    }

    fn one_read(&mut self, name: &Arc<str>, result: Result<Response, Code>) {
        match result {
            Ok(Response::Data { data, stat }) => self.read(name, data.as_ref(), stat),
            Ok(_) => self.cannot_read(name, Code::MARSHALLING_ERROR),
            Err(code) => self.cannot_read(name, code),
        }
    }

    fn several(&mut self, names: &[Arc<str>], result: Result<Response, Code>) {
        match result {
            Ok(Response::Multi(results)) if results.len() == names.len() => {
                self.shared.multi_reads.answered();
                for (name, result) in names.iter().zip(results) {
                    match result {
                        MultiResult::Data { data, stat } => self.read(name, data.as_ref(), *stat),
                        MultiResult::Failed(code) => self.cannot_read(name, code),
                        _ => self.cannot_read(name, Code::MARSHALLING_ERROR),
                    }
                }
            }
            refused => {
                if refused == Err(Code::UNIMPLEMENTED) {
                    self.shared.multi_reads.refused();
                } else {
                    // Most likely the children were too large for one reply.
                    self.smaller_batches();
                }
                names.iter().for_each(|name| self.work.unanswered(name));
            }
        }
    }

    fn read(&mut self, name: &Arc<str>, data: Option<&Bytes>, stat: Stat) {
        if self.work.is_current(name) && self.work.read(name, (stat.czxid, stat.mzxid)) {
            // A copy: a part of a reply would keep all of it in memory.
            let data = data.map_or_else(Bytes::new, |data| Bytes::copy_from_slice(data));
            let node = Arc::new(Node { data, stat: stat.into() });
            self.events.push(ChildrenEvent::Added(Arc::clone(name), node));
        }
    }

    fn cannot_read(&mut self, name: &Arc<str>, code: Code) {
        if !self.work.is_current(name) {
            return;
        }
        if code == Code::NO_NODE {
            if self.work.gone(name) {
                self.events.push(ChildrenEvent::Delete(Arc::clone(name)));
            }
            return;
        }
        self.mark_unreadable(name, Error::from_code(code, "watch"));
    }

    fn mark_unreadable(&mut self, name: &Arc<str>, error: Error) {
        let error = error.at(&format!("{}/{name}", self.path));
        if self.work.unreadable(name) {
            self.mending = patience();
            self.events.push(ChildrenEvent::Unreadable(Arc::clone(name), error));
        }
        self.unreadable.push(Arc::clone(name));
        if self.alarms.mend.is_none() {
            self.alarms.mend = Some(Instant::now() + self.mending.next().unwrap_or(LONGEST_PAUSE));
        }
    }
}
