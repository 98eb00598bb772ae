use super::commit::Commit;
use super::effects::Effects;
use super::events::Events;
use super::journal::Journal;
use super::node::{Lifetime, Node};
use super::origin::Origin;
use super::past::Past;
use super::past_event::PastEvent;
use super::prepare::Change;
use super::session::wire_timeout;
use super::sessions::Sessions;
use super::tree::Tree;
use super::watches::{Audience, Watches};
use crate::config::Config;
use crate::journal::{EndCause, TransactionKind};
use bytes::Bytes;
use docent_proto::{Acl, EventKind, MultiResult, Stat, parent};
use std::collections::BTreeSet;
use std::sync::Arc;

/// The tree, the sessions and their watches after the last transaction. It applies changes that have been
/// checked, and fires the watches that they concern.
pub(crate) struct Database {
    /// The last transaction.
    pub(super) zxid: i64,
    pub(super) tree: Tree,
    pub(super) past: Past,
    pub(super) sessions: Sessions,
    pub(super) watches: Watches,
    pub(super) journal: Journal,
    /// Whether clients may create nodes with a time to live.
    pub(super) ttl_nodes: bool,
    /// Paths of containers and nodes with a time to live.
    reapable: BTreeSet<String>,
}

impl Database {
    pub(crate) fn new(config: &Config) -> Self {
        Self {
            zxid: 0,
            tree: Tree::new(),
            past: Past::new(config.limits.past_bytes),
            sessions: Sessions::new(config),
            watches: Watches::default(),
            journal: Journal::new(config.journal),
            ttl_nodes: config.allows_ttl(),
            reapable: BTreeSet::new(),
        }
    }

    /// Continues with numbers after `origin`. Numbers that are already in use are not used again.
    pub(super) fn begin_after(&mut self, origin: Origin) {
        self.zxid = self.zxid.max(origin.zxid);
        self.sessions.begin_after(origin.session);
    }

    /// Returns a copy that neither keeps a journal nor deletes nodes on its own.
    pub(crate) fn snapshot(&self) -> Self {
        Self {
            zxid: self.zxid,
            tree: self.tree.clone(),
            past: Past::default(),
            sessions: self.sessions.clone(),
            watches: self.watches.clone(),
            journal: Journal::new(false),
            ttl_nodes: self.ttl_nodes,
            reapable: BTreeSet::new(),
        }
    }

    /// Returns the bytes of the journal, as the limit counts them.
    pub(super) fn journal_bytes(&self) -> usize {
        self.journal.bytes(&self.tree, self.sessions.len())
    }

    /// Returns the number of nodes that the next transaction copies into the past.
    pub(super) fn visits_to_remember(&self) -> usize {
        self.past.visits_to_remember(&self.tree)
    }

    /// Allocates the next transaction number. Must be called before the tree changes.
    pub(crate) fn next_zxid(&mut self, now: i64) -> i64 {
        let next = self.zxid + 1;
        self.past.remember(self.zxid, next, &self.tree, now);
        self.zxid = next;
        next
    }

    pub(crate) fn commit(&mut self, commit: Commit, change: Change, events: &mut Events) -> MultiResult {
        match change {
            Change::Create { path, data, acl, lifetime, parent_creates, with_stat } => {
                let node = Node::new(data, acl, lifetime, commit.zxid, commit.now);
                let stat = self.add_node(commit, &path, node, parent_creates, events);
                MultiResult::Created { path, stat: with_stat.then(|| stat.into()) }
            }
            Change::Delete { path } => {
                self.remove_node(commit, &path, events);
                MultiResult::Deleted
            }
            Change::SetData { path, data, version } => {
                MultiResult::Set(self.replace_data(commit, &path, data, version, events).into())
            }
            Change::SetAcl { path, acl, version } => {
                MultiResult::Set(self.replace_acl(commit, &path, acl, version).into())
            }
            Change::Check => MultiResult::Checked,
        }
    }

    fn add_node(
        &mut self,
        commit: Commit,
        path: &str,
        node: Node,
        parent_creates: i32,
        events: &mut Events,
    ) -> Stat {
        let stat = node.stat();
        let lifetime = node.lifetime;
        self.restore(path, node);
        if let Some(parent) = self.tree.parent_mut(path) {
            // The counter never decreases, so once it has reached its end it stays there. The parent's zxid
            // of the last change then stays as well.
            if parent_creates > parent.creates {
                parent.creates = parent_creates;
                parent.pzxid = commit.zxid;
            }
        }
        self.journal.record(commit, TransactionKind::Created, &self.tree, path, lifetime.owner());
        self.notify(commit, EventKind::Created, path, None, events);
        self.notify(commit, EventKind::ChildrenChanged, parent_of(path), None, events);
        stat
    }

    /// Adds a node to the tree and to the index of nodes that end on their own, without a transaction.
    pub(super) fn restore(&mut self, path: &str, node: Node) {
        if node.lifetime.is_reapable() {
            self.reapable.insert(path.to_owned());
        }
        if let Lifetime::Ephemeral(owner) = node.lifetime
            && let Some(session) = self.sessions.get_mut(owner)
        {
            session.ephemerals.insert(path.to_owned());
        }
        self.tree.add(path, node);
    }

    pub(super) fn remove_node(&mut self, commit: Commit, path: &str, events: &mut Events) {
        let Some(node) = self.tree.remove(path) else { return };
        if !planted!(StalePzxid)
            && let Some(parent) = self.tree.parent_mut(path)
        {
            parent.pzxid = commit.zxid;
        }
        if node.lifetime.is_reapable() {
            self.reapable.remove(path);
        }
        if let Lifetime::Ephemeral(owner) = node.lifetime
            && let Some(session) = self.sessions.get_mut(owner)
        {
            session.ephemerals.remove(path);
        }
        self.journal.record(commit, TransactionKind::Deleted, &self.tree, path, node.lifetime.owner());
        self.notify(commit, EventKind::Deleted, path, Some(&node.acl), events);
        self.notify(commit, EventKind::ChildrenChanged, parent_of(path), None, events);
    }

    fn replace_data(
        &mut self,
        commit: Commit,
        path: &str,
        data: Option<Bytes>,
        version: i32,
        events: &mut Events,
    ) -> Stat {
        self.tree.replace_data(path, data);
        let Some(node) = self.tree.get_mut(path) else { return Stat::default() };
        node.version = version;
        node.mzxid = commit.zxid;
        node.mtime = commit.now;
        let (stat, owner) = (node.stat(), node.lifetime.owner());
        self.journal.record(commit, TransactionKind::DataSet { version }, &self.tree, path, owner);
        self.notify(commit, EventKind::DataChanged, path, None, events);
        stat
    }

    fn replace_acl(&mut self, commit: Commit, path: &str, acl: Arc<[Acl]>, version: i32) -> Stat {
        self.tree.replace_acl(path, acl);
        let Some(node) = self.tree.get_mut(path) else { return Stat::default() };
        node.aversion = version;
        let (stat, owner) = (node.stat(), node.lifetime.owner());
        self.journal.record(commit, TransactionKind::AclSet { version }, &self.tree, path, owner);
        stat
    }

    /// Opens a session, in a transaction unless it is a local session of a read-only server.
    pub(crate) fn open_session(&mut self, timeout_ms: i32, is_local: bool, now: i64) -> i64 {
        if is_local {
            return self.sessions.open_local(timeout_ms, now);
        }
        let id = self.sessions.open(timeout_ms, now);
        let commit = Commit { zxid: self.next_zxid(now), session: id, now };
        let opened = TransactionKind::SessionOpened { timeout: wire_timeout(timeout_ms) };
        self.journal.record(commit, opened, &self.tree, "", 0);
        id
    }

    /// Ends a session and deletes its ephemeral nodes in one transaction. Returns `false` if there is no such
    /// session.
    pub(crate) fn end_session(&mut self, id: i64, cause: EndCause, now: i64, effects: &mut Effects) -> bool {
        let Some(session) = self.sessions.get_mut(id) else { return false };
        if session.is_local {
            self.forget_session(id, effects);
            return true;
        }
        let (ephemerals, timeout) = (std::mem::take(&mut session.ephemerals), session.timeout());
        let commit = Commit { zxid: self.next_zxid(now), session: id, now };
        self.journal.record(commit, TransactionKind::SessionEnded { cause, timeout }, &self.tree, "", 0);
        for path in ephemerals.iter().skip(usize::from(planted!(EphemeralOutlivesSession))) {
            self.remove_node(commit, path, &mut effects.events);
        }
        self.forget_session(id, effects);
        true
    }

    fn forget_session(&mut self, id: i64, effects: &mut Effects) {
        self.watches.remove_session(id);
        self.sessions.remove(id);
        effects.ended.push(id);
    }

    /// Returns the containers that have lost their last child, and the nodes whose time to live has passed.
    pub(super) fn done(&self, now: i64) -> Vec<String> {
        let is_done = |path: &&String| self.tree.get(path).is_some_and(|node| node.is_done(now));
        self.reapable.iter().filter(is_done).cloned().collect()
    }

    /// Deletes a node on behalf of the server, in its own transaction.
    pub(super) fn reap(&mut self, path: &str, now: i64, events: &mut Events) {
        let commit = Commit { zxid: self.next_zxid(now), session: 0, now };
        self.remove_node(commit, path, events);
    }

    /// Swaps a past version with the present. A second call restores the present.
    pub(crate) fn exchange(&mut self, version: usize) {
        self.past.exchange(version, &mut self.zxid, &mut self.tree);
    }

    /// Fires the watches on a changed node, and records the change for watches that are set on a past tree.
    /// `acl` is the access control list that applies; by default that of the node in the tree.
    fn notify(
        &mut self,
        commit: Commit,
        kind: EventKind,
        path: &str,
        acl: Option<&Arc<[Acl]>>,
        events: &mut Events,
    ) {
        let Some(acl) = acl.or_else(|| self.tree.get(path).map(|node| &node.acl)) else { return };
        self.past.record(kind, path, acl);
        let node = Audience { path, acl, sessions: &self.sessions, zxid: commit.zxid };
        self.watches.notify(node, kind, events);
    }

    /// Reports the changes since a past version to the watches of a session, as if they happened now. Returns
    /// the number of changes visited.
    pub(super) fn notify_missed(&mut self, version: usize, session: i64, events: &mut Events) -> usize {
        let (sessions, mut visits) = (&self.sessions, 0);
        for (zxid, PastEvent { kind, path, acl }) in self.past.events_since(version) {
            let node = Audience { path, acl, sessions, zxid };
            self.watches.notify_session(session, node, *kind, events);
            visits += 1;
        }
        visits
    }
}

/// Returns the path of the parent node, which is the root for top-level nodes.
fn parent_of(path: &str) -> &str {
    parent(path).unwrap_or("/")
}
