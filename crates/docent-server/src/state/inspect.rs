//! Access to the state for tests and operators: queries, and the counter of sequential children.

use super::state::State;
use super::tree::SYSTEM;
use crate::{NodeInfo, SessionInfo, Transaction};
use std::collections::BTreeSet;

impl State {
    pub(crate) fn zxid(&self) -> i64 {
        self.database.zxid
    }

    /// Returns the number of nodes as ZooKeeper counts them, which counts the root twice because it has two
    /// names.
    pub(crate) fn node_count(&self) -> usize {
        self.database.tree.len() + 1
    }

    pub(crate) fn tick_ms(&self) -> i64 {
        self.database.sessions.tick_ms()
    }

    pub(crate) fn data_bytes(&self) -> usize {
        self.database.tree.bytes()
    }

    pub(crate) fn watch_count(&self) -> usize {
        self.database.watches.count()
    }

    pub(crate) fn session_ids(&self) -> Vec<i64> {
        self.database.sessions.ids()
    }

    pub(crate) fn session_count(&self) -> usize {
        self.database.sessions.len()
    }

    /// Iterates over the sessions that have ephemeral nodes, with the paths of these.
    pub(crate) fn ephemerals(&self) -> impl Iterator<Item = (i64, &BTreeSet<String>)> {
        let sessions = self.database.sessions.iter().map(|(id, session)| (id, &session.ephemerals));
        sessions.filter(|(_, paths)| !paths.is_empty())
    }

    /// Iterates over the sessions, each with the time at which it expires unless it is touched.
    pub(crate) fn expiries(&self) -> impl Iterator<Item = (i64, i64)> {
        self.database.sessions.iter().map(|(id, session)| (id, session.expires_at))
    }

    /// Iterates over the sessions that watch the data of each path, in the order of the paths.
    pub(crate) fn data_watches(&self) -> impl Iterator<Item = (&str, impl Iterator<Item = i64>)> {
        self.database.watches.on_data()
    }

    /// Iterates over the paths whose data each session watches, both in order.
    pub(crate) fn data_watches_by_session(&self) -> impl Iterator<Item = (i64, impl Iterator<Item = &str>)> {
        self.database.watches.on_data_by_session()
    }

    /// Returns the number of paths whose data is watched, and the number of watches on them.
    pub(crate) fn data_watch_count(&self) -> (usize, usize) {
        self.database.watches.count_on_data()
    }

    pub(crate) fn session(&self, id: i64) -> Option<SessionInfo> {
        let session = self.database.sessions.get(id)?;
        Some(SessionInfo {
            id,
            timeout: session.timeout(),
            attached: session.attached,
            ephemerals: session.ephemerals.iter().cloned().collect(),
            watches: self.database.watches.count_of(id),
            events_sent: session.events_sent,
        })
    }

    /// Returns the number of nodes created by clients.
    pub(crate) fn created_count(&self) -> usize {
        self.database.tree.len() - SYSTEM.len()
    }

    /// Returns the paths of all nodes created by clients, in order.
    pub(crate) fn paths(&self) -> Vec<String> {
        let created = self.database.tree.iter().map(|(path, _)| path).filter(|path| !SYSTEM.contains(path));
        let mut paths: Vec<String> = created.map(str::to_owned).collect();
        paths.sort_unstable();
        paths
    }

    pub(crate) fn node_info(&self, path: &str) -> Option<NodeInfo> {
        let node = self.database.tree.get(path)?;
        Some(NodeInfo { data: node.data.clone(), stat: node.stat(), acl: node.acl.to_vec() })
    }

    /// Sets the number of the next sequential child to `next`. Returns `false` if that would decrease the
    /// counter, or there is no such node.
    pub(crate) fn skip_numbers(&mut self, path: &str, next: i32) -> bool {
        let Some(node) = self.database.tree.get_mut(path).filter(|node| node.creates <= next) else {
            return false;
        };
        node.creates = next;
        true
    }

    /// Returns the journal without its first `count` entries.
    pub(crate) fn journal_after(&self, count: usize) -> Vec<Transaction> {
        self.database.journal.after(count)
    }
}
