use super::commit::Commit;
use super::tree::Tree;
use crate::{Transaction, TransactionKind};
use bytes::Bytes;

/// The committed changes in their order, where they are kept at all.
pub(crate) struct Journal {
    entries: Option<Vec<Transaction>>,
    bytes: usize,
}

impl Journal {
    pub(crate) fn new(is_kept: bool) -> Self {
        Self { entries: is_kept.then(Vec::new), bytes: 0 }
    }

    /// Bytes that the entries take up, as their limit counts them.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
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
        const ENTRY: usize = 256;
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
