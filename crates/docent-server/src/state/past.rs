//! The tree as it was a while ago, for followers that lag.

use super::news::News;
use super::refusal::Refusal;
use super::tree::Tree;
use crate::limits::NODE;
use docent_proto::{Acl, EventKind};
use std::collections::VecDeque;
use std::sync::Arc;

/// The trees of the last while, up to the present, and what was told of the changes between them. Without a
/// span nothing is kept.
#[derive(Default)]
pub(crate) struct Past {
    span_ms: i64,
    /// Versions in the order of their times and transactions.
    versions: VecDeque<Version>,
    bytes: usize,
    /// Most bytes of all that is kept.
    most: usize,
    refusal: Option<Refusal>,
}

/// A tree between two transactions.
struct Version {
    /// The transaction it shows.
    zxid: i64,
    /// Time at which the next version was made.
    until_ms: i64,
    tree: Tree,
    /// The transaction that made the next version.
    next: i64,
    /// Changes by that transaction, in the order in which it made them.
    news: Vec<News>,
}

/// Bounds on how far a server may be behind when it answers.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Behind {
    pub(crate) lag_ms: i64,
    /// The newest transaction that the client knows of: it is shown nothing older.
    pub(crate) seen: i64,
}

impl Past {
    /// A past of up to so many bytes.
    pub(crate) fn new(most: usize) -> Self {
        Self { most, ..Self::default() }
    }

    /// Keeps the tree's versions for so long from here on; 0 for not at all.
    pub(crate) fn keep(&mut self, span_ms: i64) {
        self.span_ms = span_ms;
        if span_ms == 0 {
            self.clear();
        }
    }

    /// Forgets all of it.
    pub(super) fn clear(&mut self) {
        self.versions.clear();
        self.bytes = 0;
    }

    /// Keeps the present, which transaction `next` is about to change. The oldest versions make room for it.
    pub(crate) fn remember(&mut self, zxid: i64, next: i64, tree: &Tree, now: i64) {
        self.forget(now);
        if self.span_ms == 0 {
            return;
        }
        let added = weight(tree);
        self.make_room(added);
        // A version that has no room would only be dropped again.
        if added <= self.most {
            self.bytes += added;
            let (tree, news) = (tree.clone(), Vec::new());
            self.versions.push_back(Version { zxid, until_ms: now, tree, next, news });
        }
    }

    /// Keeps a change by the transaction of which the last version was told.
    pub(crate) fn record(&mut self, kind: EventKind, path: &str, acl: &Arc<[Acl]>) {
        if self.versions.is_empty() {
            return;
        }
        let news = News::new(kind, path, acl);
        let added = news.weight();
        self.make_room(added);
        // Without room for all of its changes no version is shown from which they would be missed.
        if let Some(version) = self.versions.back_mut() {
            self.bytes += added;
            version.news.push(news);
        }
    }

    /// Drops the oldest versions until so many bytes more may be kept, or none is left.
    fn make_room(&mut self, added: usize) {
        self.refusal = self.refusal.or(Refusal::over("past_bytes", self.bytes + added, self.most));
        while self.bytes + added > self.most && !self.versions.is_empty() {
            self.drop_oldest();
        }
    }

    /// The limit, if it was met since the last call.
    pub(crate) fn take_refusal(&mut self) -> Option<Refusal> {
        self.refusal.take()
    }

    /// Nodes that are copied to keep the present.
    pub(crate) fn looks_to_remember(&self, tree: &Tree) -> usize {
        if self.span_ms > 0 && weight(tree) <= self.most { tree.len() } else { 0 }
    }

    fn forget(&mut self, now: i64) {
        while self.versions.front().is_some_and(|version| version.until_ms + self.span_ms <= now) {
            self.drop_oldest();
        }
    }

    fn drop_oldest(&mut self) {
        if let Some(version) = self.versions.pop_front() {
            self.bytes -= weight(&version.tree) + version.news.iter().map(News::weight).sum::<usize>();
        }
    }

    /// The oldest version that may be shown; `None` when that is the present.
    pub(crate) fn oldest(&self, behind: Behind, now: i64) -> Option<usize> {
        let is_too_old = |version: &Version| {
            version.until_ms <= now.saturating_sub(behind.lag_ms) || version.zxid < behind.seen
        };
        let index = self.versions.partition_point(is_too_old);
        (index < self.versions.len()).then_some(index)
    }

    /// The transaction that a version shows.
    pub(crate) fn zxid(&self, index: usize) -> Option<i64> {
        self.versions.get(index).map(|version| version.zxid)
    }

    /// The tree of a version.
    pub(super) fn tree(&self, index: usize) -> Option<&Tree> {
        self.versions.get(index).map(|version| &version.tree)
    }

    /// Puts a version in the present's place, or back.
    pub(crate) fn exchange(&mut self, index: usize, zxid: &mut i64, tree: &mut Tree) {
        if let Some(version) = self.versions.get_mut(index) {
            std::mem::swap(tree, &mut version.tree);
            std::mem::swap(zxid, &mut version.zxid);
        }
    }

    /// Changes behind a version up to the present, each with its transaction, in their order.
    pub(crate) fn news(&self, index: usize) -> impl Iterator<Item = (i64, &News)> {
        let behind = self.versions.range(index..);
        behind.flat_map(|version| version.news.iter().map(|news| (version.next, news)))
    }
}

/// Bytes that a tree takes up, as their limit counts them. It shares data with others.
fn weight(tree: &Tree) -> usize {
    tree.len() * NODE + tree.weight()
}
