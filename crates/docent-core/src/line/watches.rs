//! Watches of a ticket that waits: one on its own node, and those on nodes ahead, set by as few requests as
//! can be.

use super::{Ticket, WaitError};
use crate::session::{Fired, Lane, Pending, Watch, watch_requests};
use docent_proto::{Acl, Code, EventKind, Permissions, Request};

/// The watches of one ticket.
#[derive(Debug, Default)]
pub(super) struct LineWatches {
    /// On the own node; `None` where none is set, or it fired.
    pub(super) own: Option<Box<Watch>>,
    /// True once somebody wrote to the own node, or may have: its watch tells of what comes, not of that.
    pub(super) own_changed: bool,
    /// On nodes ahead, at most one for each.
    ahead: Vec<WatchAhead>,
}

/// Watch on a node ahead.
#[derive(Debug)]
pub(super) struct WatchAhead {
    name: String,
    pub(super) watch: Watch,
    /// Number of links that were lost before it was set.
    pub(super) losses: u64,
    /// True when it was set by a read: the servers tell this client of its node.
    pub(super) is_told: bool,
}

/// State of a node ahead, as its watch shows it at once.
enum Seen {
    Watched,
    Changed,
    Gone,
}

impl LineWatches {
    /// The watch on the node of this name, if it is set, with the one on the own node.
    pub(super) fn on(&mut self, name: &str) -> (&mut Option<Box<Watch>>, Option<&mut WatchAhead>) {
        (&mut self.own, self.ahead.iter_mut().find(|ahead| ahead.name == name))
    }

    pub(super) fn forget(&mut self, name: &str) {
        self.ahead.retain(|ahead| ahead.name != name);
    }

    /// True when the own node is watched, or was not asked to be.
    fn watches_own(&self) -> bool {
        self.own.is_some() || planted!(HandOffWithoutOwnWatch | GrantWithoutOwnNode)
    }

    /// True when the watches on the own node and on this one are set.
    pub(super) fn are_set(&self, name: &str) -> bool {
        self.watches_own() && self.ahead.iter().any(|ahead| ahead.name == name)
    }

    /// The event of the watch on the own node, if it came.
    pub(super) fn own_fired(&mut self) -> Option<Fired> {
        self.own.as_mut()?.fired.try_recv().ok()
    }

    /// Takes the watch on the own node, if that is as the ticket made it, for the guard that begins.
    pub(super) fn hand_over(&mut self) -> Option<Box<Watch>> {
        if self.own_changed { None } else { self.own.take() }
    }

    /// Sets the watches on the nodes of `names`, and on the own one, where they are missing: all as of the
    /// transaction that made the own node, so that its watch tells of each write to it. False when the
    /// caller shall look at the line again.
    ///
    /// # Errors
    /// `Gone` when the own node is not there.
    pub(super) async fn set(&mut self, ticket: &Ticket, names: &[String]) -> Result<bool, WaitError> {
        let missing = names.iter().filter(|name| !self.ahead.iter().any(|ahead| ahead.name == **name));
        let missing: Vec<String> = missing.cloned().collect();
        let own = (!self.watches_own()).then(|| ticket.node.path.clone());
        let (set_own, read_own) = match own {
            Some(own) if self.own_changed || !ticket.is_surely_readable() => (None, Some(own)),
            own => (own, None),
        };
        let own_is_set = set_own.is_some();
        let folder = ticket.line.full_path();
        let paths = missing.iter().map(|name| format!("{folder}/{name}")).chain(set_own);
        let losses = ticket.generation.losses();
        let submit = |request| ticket.generation.session.submit(request, Lane::Call);
        let requests = watch_requests(ticket.node.czxid, paths, ticket.generation.max_request);
        let set: Vec<_> = requests.into_iter().map(submit).collect();
        if let Some(own) = read_own
            && !self.read_own(ticket, submit(watched(own))).await?
        {
            return Ok(false);
        }
        let mut watches = Vec::with_capacity(missing.len() + 1);
        for pending in set {
            let Some(reply) = ticket.reply(pending.await).await? else { return Ok(false) };
            if let Err(code) = reply.result {
                return Err(ticket.line.refused(code).into());
            }
            watches.extend(reply.watches);
        }
        if own_is_set {
            self.own = watches.pop().map(Box::new);
        }
        let ahead = missing.into_iter().zip(watches);
        self.ahead.extend(ahead.map(|(name, watch)| WatchAhead { name, watch, losses, is_told: false }));
        Ok(true)
    }

    async fn read_own(&mut self, ticket: &Ticket, read: Pending) -> Result<bool, WaitError> {
        match ticket.reply(read.await).await? {
            None => Ok(false),
            Some(reply) if reply.result == Err(Code::NO_NODE) => Err(WaitError::Gone),
            // Without a watch, because we may not read the node we created, a proof of the node is asked for
            // when the turn comes.
            Some(reply) => {
                self.own = reply.watch;
                self.own_changed = true;
                Ok(true)
            }
        }
    }

    /// True when none of the watches on the nodes of `names` is older than this link: so many were lost
    /// before it. What older ones tell comes path by path, after a new link.
    pub(super) fn are_of_link(&self, names: &[String], losses: u64) -> bool {
        self.ahead.iter().filter(|ahead| names.contains(&ahead.name)).all(|ahead| ahead.losses == losses)
    }

    /// Those of `names` whose nodes are there, by the watches that were just set on them. One that was
    /// written to is still there.
    pub(super) fn left(&mut self, names: Vec<String>) -> Vec<String> {
        let mut left = Vec::with_capacity(names.len());
        for name in names {
            match self.seen(&name) {
                Seen::Gone => self.forget(&name),
                Seen::Changed => {
                    self.forget(&name);
                    left.push(name);
                }
                Seen::Watched => left.push(name),
            }
        }
        left
    }

    fn seen(&mut self, name: &str) -> Seen {
        let Some(ahead) = self.ahead.iter_mut().find(|ahead| ahead.name == name) else {
            return Seen::Changed;
        };
        match ahead.watch.fired.try_recv() {
            Ok(Fired::Event(EventKind::Deleted)) => Seen::Gone,
            Ok(_) => Seen::Changed,
            Err(_) => Seen::Watched,
        }
    }

    /// Reads the node of this name with a watch, in place of one that was set without looking at the node.
    /// `None` when it is not there, or the caller shall look again.
    ///
    /// # Errors
    /// `Some(NO_AUTH)` when it may not be read.
    pub(super) async fn read(&mut self, ticket: &Ticket, name: &str) -> Result<Option<Code>, WaitError> {
        let path = format!("{}/{name}", ticket.line.full_path());
        let losses = ticket.generation.losses();
        let request = match planted!(ExistenceWatch) {
            true => Request::Exists { path, watch: true },
            false => watched(path),
        };
        let read = ticket.generation.session.submit(request, Lane::Call).await;
        let Some(reply) = ticket.reply(read).await? else {
            self.forget(name);
            return Ok(None);
        };
        // The new watch first: the old one's place at the server is not given up.
        if let Some(watch) = reply.watch {
            let read = WatchAhead { name: name.to_owned(), watch: *watch, losses, is_told: true };
            self.forget(name);
            self.ahead.push(read);
            return Ok(None);
        }
        self.forget(name);
        match reply.result {
            Err(Code::NO_AUTH) => Ok(Some(Code::NO_AUTH)),
            Ok(_) | Err(Code::NO_NODE) => Ok(None),
            Err(code) => Err(ticket.line.refused(code).into()),
        }
    }
}

impl Ticket {
    /// True when its access control list lets everybody, or its creator, read its node. Elsewhere a read
    /// tells: some servers tell a client nothing of a node that it may not read.
    fn is_surely_readable(&self) -> bool {
        /// Digits of the number at the end of the path.
        const DIGITS: usize = 10;
        let path = &self.node.path;
        let prefix = path.len().checked_sub(DIGITS).and_then(|end| path.get(..end)).unwrap_or(path);
        let all = |entry: &Acl| &*entry.scheme == "world" && &*entry.id == "anyone";
        let reads = |entry: &Acl| entry.permissions.contains(Permissions::READ);
        let acl = self.line.client().shared().acl(prefix);
        acl.iter().any(|entry| reads(entry) && (all(entry) || &*entry.scheme == "auth"))
    }
}

/// Request that reads a node and watches it. Unlike `exists` it leaves no watch where there is no node.
pub(super) fn watched(path: String) -> Request {
    Request::GetData { path, watch: true }
}
