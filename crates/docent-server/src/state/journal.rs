use super::commit::Commit;
use super::tree::Tree;
use crate::{Transaction, TransactionKind};

/// The committed changes in their order, where they are kept at all.
pub(crate) struct Journal(Option<Vec<Transaction>>);

impl Journal {
    pub(crate) fn new(is_kept: bool) -> Self {
        Self(is_kept.then(Vec::new))
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
        if let Some(journal) = &mut self.0 {
            let Commit { zxid, session, now: time_ms } = commit;
            let written = matches!(kind, TransactionKind::Created | TransactionKind::DataSet { .. });
            let data = tree.get(path).filter(|_| written).and_then(|node| node.data.clone());
            journal.push(Transaction { zxid, time_ms, session, kind, path: path.to_owned(), owner, data });
        }
    }

    /// All but the first `count` entries.
    pub(crate) fn after(&self, count: usize) -> Vec<Transaction> {
        self.0.as_ref().and_then(|journal| journal.get(count..)).unwrap_or_default().to_vec()
    }
}
