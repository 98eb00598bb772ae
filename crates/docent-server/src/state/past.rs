//! Past trees, for followers that lag.

use super::past_event::PastEvent;
use super::refusal::Refusal;
use super::tree::Tree;
use crate::limits::NODE;
use docent_proto::{Acl, EventKind};
use std::collections::VecDeque;
use std::sync::Arc;

/// The trees of the recent past, and the changes between them up to the present. With a span of 0 nothing is
/// kept.
#[derive(Default)]
pub(crate) struct Past {
    span_ms: i64,
    /// Versions in the order of their times and transactions.
    versions: VecDeque<Version>,
    bytes: usize,
    /// Maximum bytes of everything that is kept.
    most: usize,
    refusal: Option<Refusal>,
}

/// The tree between two transactions.
struct Version {
    /// The last transaction that the version shows.
    zxid: i64,
    /// Time at which the next version was created.
    until_ms: i64,
    tree: Tree,
    /// The transaction that created the next version.
    next: i64,
    /// Changes by the `next` transaction, in order.
    events: Vec<PastEvent>,
}

/// Bounds on how far a reply may lag behind the present.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Staleness {
    pub(crate) lag_ms: i64,
    /// The newest transaction that the client knows of. Nothing older may be shown to it.
    pub(crate) seen: i64,
}

impl Past {
    /// Creates a past of up to `most` bytes.
    pub(crate) fn new(most: usize) -> Self {
        Self { most, ..Self::default() }
    }

    /// Keeps versions for `span_ms` milliseconds from now on; 0 to keep none.
    pub(crate) fn keep(&mut self, span_ms: i64) {
        self.span_ms = span_ms;
        if span_ms == 0 {
            self.clear();
        }
    }

    /// Discards all versions.
    pub(super) fn clear(&mut self) {
        self.versions.clear();
        self.bytes = 0;
    }

    /// Keeps the present tree, which transaction `next` is about to change. The oldest versions are dropped
    /// to make room.
    pub(crate) fn remember(&mut self, zxid: i64, next: i64, tree: &Tree, now: i64) {
        self.forget(now);
        if self.span_ms == 0 {
            return;
        }
        let added = weight(tree);
        self.make_room(added);
        // A version that does not fit would be dropped again immediately.
        if added <= self.most {
            self.bytes += added;
            let (tree, events) = (tree.clone(), Vec::new());
            self.versions.push_back(Version { zxid, until_ms: now, tree, next, events });
        }
    }

    /// Records a change by the transaction that follows the last version.
    pub(crate) fn record(&mut self, kind: EventKind, path: &str, acl: &Arc<[Acl]>) {
        if self.versions.is_empty() {
            return;
        }
        let event = PastEvent::new(kind, path, acl);
        let added = event.weight();
        self.make_room(added);
        // If there is no room for all changes since a version, that version is no longer shown: clients would
        // miss changes.
        if let Some(version) = self.versions.back_mut() {
            self.bytes += added;
            version.events.push(event);
        }
    }

    /// Drops the oldest versions until `added` more bytes fit, or none is left.
    fn make_room(&mut self, added: usize) {
        self.refusal = self.refusal.or(Refusal::over_limit("past_bytes", self.bytes + added, self.most));
        while self.bytes + added > self.most && !self.versions.is_empty() {
            self.drop_oldest();
        }
    }

    /// Returns the limit if it was exceeded since the last call.
    pub(crate) fn take_refusal(&mut self) -> Option<Refusal> {
        self.refusal.take()
    }

    /// Returns the number of nodes that are copied to keep the present.
    pub(crate) fn visits_to_remember(&self, tree: &Tree) -> usize {
        if self.span_ms > 0 && weight(tree) <= self.most { tree.len() } else { 0 }
    }

    fn forget(&mut self, now: i64) {
        while self.versions.front().is_some_and(|version| version.until_ms + self.span_ms <= now) {
            self.drop_oldest();
        }
    }

    fn drop_oldest(&mut self) {
        if let Some(version) = self.versions.pop_front() {
            self.bytes -= weight(&version.tree) + version.events.iter().map(PastEvent::weight).sum::<usize>();
        }
    }

    /// Returns the index of the oldest version that may be shown; `None` if only the present may be.
    pub(crate) fn oldest(&self, staleness: Staleness, now: i64) -> Option<usize> {
        let is_too_old = |version: &Version| {
            version.until_ms <= now.saturating_sub(staleness.lag_ms) || version.zxid < staleness.seen
        };
        let index = self.versions.partition_point(is_too_old);
        (index < self.versions.len()).then_some(index)
    }

    /// Returns the transaction that a version shows.
    pub(crate) fn zxid(&self, index: usize) -> Option<i64> {
        self.versions.get(index).map(|version| version.zxid)
    }

    /// Returns the tree of a version.
    pub(super) fn tree(&self, index: usize) -> Option<&Tree> {
        self.versions.get(index).map(|version| &version.tree)
    }

    /// Swaps a version with the present. A second call restores the present.
    pub(crate) fn exchange(&mut self, index: usize, zxid: &mut i64, tree: &mut Tree) {
        if let Some(version) = self.versions.get_mut(index) {
            std::mem::swap(tree, &mut version.tree);
            std::mem::swap(zxid, &mut version.zxid);
        }
    }

    /// Iterates over the changes from a version up to the present, in order, each with its transaction.
    pub(crate) fn events_since(&self, index: usize) -> impl Iterator<Item = (i64, &PastEvent)> {
        let since = self.versions.range(index..);
        since.flat_map(|version| version.events.iter().map(|event| (version.next, event)))
    }
}

/// Returns the bytes of a tree, as the limit counts them. Versions may share the data.
fn weight(tree: &Tree) -> usize {
    tree.len() * NODE + tree.weight()
}
