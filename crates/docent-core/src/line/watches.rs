//! Watches of a waiting ticket, on its own node and on nodes ahead, set with as few requests as possible.

use super::{Ticket, WaitError};
use crate::session::{Fired, Lane, Pending, Watch, watch_requests};
use docent_proto::{Acl, Code, EventKind, Permissions, Request};

/// The watches of one ticket.
#[derive(Debug, Default)]
pub(super) struct LineWatches {
    /// Watch on the own node; `None` if no watch is set, or it fired.
    pub(super) own: Option<Box<Watch>>,
    /// True if another client wrote to the own node, or may have. The node's watch reports later writes, but
    /// not that one.
    pub(super) own_changed: bool,
    /// Watches on nodes ahead, at most one for each node.
    ahead: Vec<WatchAhead>,
}

/// Watch on a node ahead.
#[derive(Debug)]
pub(super) struct WatchAhead {
    name: String,
    pub(super) watch: Watch,
    /// Number of links that were lost before the watch was set.
    pub(super) losses: u64,
    /// True if a read set the watch, which shows that the servers send this client events about the node.
    pub(super) delivers_events: bool,
}

/// State of a node ahead, as its watch shows right after it was set.
enum NodeState {
    Watched,
    Changed,
    Deleted,
}

impl LineWatches {
    /// Returns the watch on the own node, and the watch on the node of this name if one is set.
    pub(super) fn on(&mut self, name: &str) -> (&mut Option<Box<Watch>>, Option<&mut WatchAhead>) {
        (&mut self.own, self.ahead.iter_mut().find(|ahead| ahead.name == name))
    }

    pub(super) fn forget(&mut self, name: &str) {
        self.ahead.retain(|ahead| ahead.name != name);
    }

    /// Returns true if the own node is watched, or a planted defect skips that watch.
    fn watches_own(&self) -> bool {
        self.own.is_some() || planted!(HandOffWithoutOwnWatch | GrantWithoutOwnNode)
    }

    /// Returns true if the watches on the own node and on the node of this name are set.
    pub(super) fn are_set(&self, name: &str) -> bool {
        self.watches_own() && self.ahead.iter().any(|ahead| ahead.name == name)
    }

    /// Returns the event of the watch on the own node, if it has arrived.
    pub(super) fn own_fired(&mut self) -> Option<Fired> {
        self.own.as_mut()?.fired.try_recv().ok()
    }

    /// Takes the watch on the own node for the new guard, unless the node may have changed since the ticket
    /// created it.
    pub(super) fn hand_over(&mut self) -> Option<Box<Watch>> {
        if self.own_changed { None } else { self.own.take() }
    }

    /// Sets the missing watches on the nodes of `names` and on the own node. All are set as of the
    /// transaction that created the own node, so the watch reports every write to the own node. Returns false
    /// if the caller should list the line again.
    ///
    /// # Errors
    /// `Gone` if the own node does not exist.
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
        self.ahead.extend(ahead.map(|(name, watch)| WatchAhead {
            name,
            watch,
            losses,
            delivers_events: false,
        }));
        Ok(true)
    }

    async fn read_own(&mut self, ticket: &Ticket, read: Pending) -> Result<bool, WaitError> {
        match ticket.reply(read.await).await? {
            None => Ok(false),
            Some(reply) if reply.result == Err(Code::NO_NODE) => Err(WaitError::Gone),
            // Without READ permission on the own node there is no watch. The node is then checked when the
            // turn comes.
            Some(reply) => {
                self.own = reply.watch;
                self.own_changed = true;
                Ok(true)
            }
        }
    }

    /// Returns true if all watches on the nodes of `names` were set on this link, after `losses` lost links.
    /// Events of older watches arrive path by path after a reconnect.
    pub(super) fn are_of_link(&self, names: &[String], losses: u64) -> bool {
        self.ahead.iter().filter(|ahead| names.contains(&ahead.name)).all(|ahead| ahead.losses == losses)
    }

    /// Returns the members of `names` whose nodes exist, according to the watches that were just set. A node
    /// that was written to still exists.
    pub(super) fn remaining(&mut self, names: Vec<String>) -> Vec<String> {
        let mut remaining = Vec::with_capacity(names.len());
        for name in names {
            match self.state_of(&name) {
                NodeState::Deleted => self.forget(&name),
                NodeState::Changed => {
                    self.forget(&name);
                    remaining.push(name);
                }
                NodeState::Watched => remaining.push(name),
            }
        }
        remaining
    }

    fn state_of(&mut self, name: &str) -> NodeState {
        let Some(ahead) = self.ahead.iter_mut().find(|ahead| ahead.name == name) else {
            return NodeState::Changed;
        };
        match ahead.watch.fired.try_recv() {
            Ok(Fired::Event(EventKind::Deleted)) => NodeState::Deleted,
            Ok(_) => NodeState::Changed,
            Err(_) => NodeState::Watched,
        }
    }

    /// Reads the node of this name with a watch, which replaces one that was set without a read. Returns
    /// `None` if the node does not exist, or if the caller should list the line again.
    ///
    /// # Errors
    /// `Some(NO_AUTH)` if the node may not be read.
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
        // Add the new watch before the old one is dropped, so that the registration at the server is kept.
        if let Some(watch) = reply.watch {
            let read = WatchAhead { name: name.to_owned(), watch: *watch, losses, delivers_events: true };
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
    /// Returns true if the access control list lets everyone, or its creator, read the node. Otherwise only a
    /// read shows whether events arrive, because some servers send no events about a node that the client may
    /// not read.
    fn is_surely_readable(&self) -> bool {
        /// Number of digits at the end of the path.
        const DIGITS: usize = 10;
        let path = &self.node.path;
        let prefix = path.len().checked_sub(DIGITS).and_then(|end| path.get(..end)).unwrap_or(path);
        let all = |entry: &Acl| &*entry.scheme == "world" && &*entry.id == "anyone";
        let reads = |entry: &Acl| entry.permissions.contains(Permissions::READ);
        let acl = self.line.client().shared().acl(prefix);
        acl.iter().any(|entry| reads(entry) && (all(entry) || &*entry.scheme == "auth"))
    }
}

/// Returns a request that reads a node and watches it. Unlike `exists`, it leaves no watch if the node does
/// not exist.
pub(super) fn watched(path: String) -> Request {
    Request::GetData { path, watch: true }
}
