//! Access of tests and operators to the state: look-ups, and the counter of sequential children.

use super::state::State;
use super::tree::SYSTEM;
use crate::{NodeInfo, SessionInfo, Transaction};

impl State {
    pub(crate) fn zxid(&self) -> i64 {
        self.database.zxid
    }

    pub(crate) fn node_count(&self) -> usize {
        self.database.tree.len()
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

    pub(crate) fn ephemeral_count(&self, session: i64) -> usize {
        self.database.sessions.get(session).map_or(0, |session| session.ephemerals.len())
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

    /// The paths of all nodes that clients made, in order.
    pub(crate) fn paths(&self) -> Vec<String> {
        let made = self.database.tree.iter().map(|(path, _)| path).filter(|path| !SYSTEM.contains(path));
        let mut paths: Vec<String> = made.map(str::to_owned).collect();
        paths.sort_unstable();
        paths
    }

    pub(crate) fn node_info(&self, path: &str) -> Option<NodeInfo> {
        let node = self.database.tree.get(path)?;
        Some(NodeInfo { data: node.data.clone(), stat: node.stat(), acl: node.acl.to_vec() })
    }

    /// Goes on with the number `next` for sequential children; false when that would go back, or there is no
    /// such node.
    pub(crate) fn skip_numbers(&mut self, path: &str, next: i32) -> bool {
        let Some(node) = self.database.tree.get_mut(path).filter(|node| node.creates <= next) else {
            return false;
        };
        node.creates = next;
        true
    }

    /// The journal without its first `count` entries.
    pub(crate) fn journal_after(&self, count: usize) -> Vec<Transaction> {
        self.database.journal.after(count)
    }
}
