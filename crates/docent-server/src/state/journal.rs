use super::commit::Commit;
use super::tree::Tree;
use crate::{Transaction, TransactionKind};
use bytes::Bytes;

/// Bytes of an entry besides its path and data, with room for the list to grow.
const ENTRY: usize = 384;

/// The committed changes in their order, where they are kept at all.
pub(crate) struct Journal {
    entries: Option<Vec<Transaction>>,
    bytes: usize,
}

impl Journal {
    pub(crate) fn new(is_kept: bool) -> Self {
        Self { entries: is_kept.then(Vec::new), bytes: 0 }
    }

    /// Bytes that the entries take up, as their limit counts them, with those of the ends of all nodes and
    /// sessions that are there.
    pub(crate) fn bytes(&self, tree: &Tree, sessions: usize) -> usize {
        let ends = (tree.len() + sessions) * ENTRY + tree.bytes();
        if self.entries.is_some() { self.bytes + ends } else { 0 }
    }

    /// Takes a change down that was made to `path` of `tree`.
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

    /// All but the first `count` entries.
    pub(crate) fn after(&self, count: usize) -> Vec<Transaction> {
        self.entries.as_ref().and_then(|entries| entries.get(count..)).unwrap_or_default().to_vec()
    }
}
