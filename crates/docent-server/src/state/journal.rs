use super::commit::Commit;
use super::tree::Tree;
use crate::{Transaction, TransactionKind};
use bytes::Bytes;

/// Bytes of an entry besides its path and data, with room for the list to grow.
const ENTRY: usize = 384;

/// The committed changes in order, if they are kept.
pub(crate) struct Journal {
    entries: Option<Vec<Transaction>>,
    bytes: usize,
}

impl Journal {
    pub(crate) fn new(is_kept: bool) -> Self {
        Self { entries: is_kept.then(Vec::new), bytes: 0 }
    }

    /// Returns the bytes that the entries take up, as the limit counts them. They include the entries needed
    /// to record the end of all existing nodes and sessions.
    pub(crate) fn bytes(&self, tree: &Tree, sessions: usize) -> usize {
        let ends = (tree.len() + sessions) * ENTRY + tree.bytes();
        if self.entries.is_some() { self.bytes + ends } else { 0 }
    }

    /// Records a change of `path` in `tree`.
    pub(crate) fn record(
        &mut self,
        commit: Commit,
        kind: TransactionKind,
        tree: &Tree,
        path: &str,
        owner: i64,
    ) {
        if let Some(entries) = &mut self.entries {
            let Commit { zxid, session, now: time_ms } = commit;
            let written = matches!(kind, TransactionKind::Created | TransactionKind::DataSet { .. });
            let data = tree.get(path).filter(|_| written).and_then(|node| node.data.clone());
            self.bytes += ENTRY + path.len() + data.as_ref().map_or(0, Bytes::len);
            entries.push(Transaction { zxid, time_ms, session, kind, path: path.to_owned(), owner, data });
        }
    }

    /// Returns all entries except the first `count`.
    pub(crate) fn after(&self, count: usize) -> Vec<Transaction> {
        self.entries.as_ref().and_then(|entries| entries.get(count..)).unwrap_or_default().to_vec()
    }
}
