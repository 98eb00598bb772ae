//! Access of tests and operators to the state: look-ups, and the counter of sequential children.

use super::State;
use super::tree::SYSTEM;
use crate::{NodeInfo, SessionInfo, Transaction};

impl State {
    pub(crate) fn zxid(&self) -> i64 {
        self.zxid
    }

    pub(crate) fn node_count(&self) -> usize {
        self.tree.len()
    }

    pub(crate) fn data_bytes(&self) -> usize {
        self.tree.bytes()
    }

    pub(crate) fn watch_count(&self) -> usize {
        self.watches.count()
    }

    pub(crate) fn session_ids(&self) -> Vec<i64> {
        self.sessions.ids()
    }

    pub(crate) fn ephemeral_count(&self, session: i64) -> usize {
        self.sessions.get(session).map_or(0, |session| session.ephemerals.len())
    }

    pub(crate) fn session(&self, id: i64) -> Option<SessionInfo> {
        let session = self.sessions.get(id)?;
        Some(SessionInfo {
            id,
            timeout: session.timeout(),
            attached: session.attached,
            ephemerals: session.ephemerals.iter().cloned().collect(),
            watches: self.watches.count_of(id),
            events_sent: session.events_sent,
        })
    }

    /// The paths of all nodes that clients made, in order.
    pub(crate) fn paths(&self) -> Vec<String> {
        let made = self.tree.iter().map(|(path, _)| path).filter(|path| !SYSTEM.contains(path));
        let mut paths: Vec<String> = made.map(str::to_owned).collect();
        paths.sort_unstable();
        paths
    }

    pub(crate) fn node_info(&self, path: &str) -> Option<NodeInfo> {
        let node = self.tree.get(path)?;
        Some(NodeInfo { data: node.data.clone(), stat: node.stat(), acl: node.acl.to_vec() })
    }

    /// Goes on with the number `next` for sequential children; false when that would go back, or there is no
    /// such node.
    pub(crate) fn skip_numbers(&mut self, path: &str, next: i32) -> bool {
        let Some(node) = self.tree.get_mut(path).filter(|node| node.creates <= next) else { return false };
        node.creates = next;
        true
    }

    /// The journal without its first `count` entries.
    pub(crate) fn journal_after(&self, count: usize) -> Vec<Transaction> {
        self.journal.as_ref().and_then(|journal| journal.get(count..)).unwrap_or_default().to_vec()
    }
}
