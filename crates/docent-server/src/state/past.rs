//! The tree as it was a while ago, for followers that lag.

use super::node::Node;
use super::refusal::Refusal;
use super::tree::Tree;
use super::watches::Aspect;
use crate::limits::NODE;
use docent_proto::{EventKind, Request};
use std::collections::VecDeque;

/// The trees of the last while. Without a span nothing is kept.
#[derive(Default)]
pub(crate) struct Past {
    span_ms: i64,
    /// Versions in the order of their times and transactions.
    versions: VecDeque<Version>,
    bytes: usize,
}

/// A tree between two transactions.
struct Version {
    /// The transaction it shows.
    zxid: i64,
    /// Time at which the next version was made.
    until_ms: i64,
    tree: Tree,
}

/// Bounds on how far a server may be behind when it answers.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Behind {
    pub(crate) lag_ms: i64,
    /// The newest transaction that the client knows of: it is shown nothing older.
    pub(crate) seen: i64,
}

impl Past {
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

    /// Keeps the present, which is about to change, in up to `most` bytes for all that is kept: the oldest
    /// versions make room. Tells of it if they had to.
    pub(crate) fn remember(&mut self, zxid: i64, tree: &Tree, now: i64, most: usize) -> Option<Refusal> {
        self.forget(now);
        if self.span_ms == 0 {
            return None;
        }
        let added = weight(tree);
        let refusal = Refusal::over("past_bytes", self.bytes + added, most);
        while self.bytes + added > most && !self.versions.is_empty() {
            self.drop_oldest();
        }
        // A version that has no room would only be dropped again.
        if added <= most {
            self.bytes += added;
            self.versions.push_back(Version { zxid, until_ms: now, tree: tree.clone() });
        }
        refusal
    }

    /// Nodes that are copied to keep the present.
    pub(crate) fn looks_to_remember(&self, tree: &Tree, most: usize) -> usize {
        if self.span_ms > 0 && weight(tree) <= most { tree.len() } else { 0 }
    }

    fn forget(&mut self, now: i64) {
        while self.versions.front().is_some_and(|version| version.until_ms + self.span_ms <= now) {
            self.drop_oldest();
        }
    }

    fn drop_oldest(&mut self) {
        if let Some(version) = self.versions.pop_front() {
            self.bytes -= weight(&version.tree);
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

    /// Puts a version in the present's place, or back.
    pub(crate) fn exchange(&mut self, index: usize, zxid: &mut i64, tree: &mut Tree) {
        if let Some(version) = self.versions.get_mut(index) {
            std::mem::swap(tree, &mut version.tree);
            std::mem::swap(zxid, &mut version.zxid);
        }
    }

    /// Steps from a version to the present: each transaction, with the tree before and after it.
    pub(crate) fn steps<'a>(
        &'a self,
        index: usize,
        present: (i64, &'a Tree),
    ) -> impl Iterator<Item = (i64, &'a Tree, &'a Tree)> {
        let past = || self.versions.range(index..).map(|version| (version.zxid, &version.tree));
        let after = past().skip(1).chain([present]);
        past().zip(after).map(|((_, before), (zxid, after))| (zxid, before, after))
    }

    /// First change behind a version, up to the present, that a watch tells: the transaction, and the event
    /// with the node whose access control list decides about telling it.
    pub(crate) fn first_change<'a>(
        &'a self,
        index: usize,
        present: (i64, &'a Tree),
        aspect: Aspect,
        path: &str,
    ) -> Option<(i64, EventKind, &'a Node)> {
        self.steps(index, present).find_map(|(zxid, before, after)| {
            let (kind, node) = change(aspect, before.get(path), after.get(path))?;
            Some((zxid, kind, node))
        })
    }
}

/// Bytes that a version takes up, as their limit counts them. It shares data with others.
fn weight(tree: &Tree) -> usize {
    tree.len() * NODE + tree.weight()
}

/// Watch that a read of the tree asks for, if any; `None` when it is no such read.
pub(crate) fn watch_of(request: &Request) -> Option<Option<(Aspect, &str)>> {
    let (aspect, path, watch) = match request {
        Request::Exists { path, watch } | Request::GetData { path, watch } => (Aspect::Data, path, watch),
        Request::GetChildren { path, watch } | Request::GetChildren2 { path, watch } => {
            (Aspect::Children, path, watch)
        }
        Request::GetAcl { .. } | Request::GetAllChildrenNumber { .. } | Request::MultiRead(_) => {
            return Some(None);
        }
        _ => return None,
    };
    Some(watch.then_some((aspect, path)))
}

/// Event that a watch tells of the step from one tree to the next, and the node whose access control list
/// decides about telling it.
fn change<'a>(
    aspect: Aspect,
    before: Option<&'a Node>,
    after: Option<&'a Node>,
) -> Option<(EventKind, &'a Node)> {
    match (before, after) {
        (None, None) => None,
        (None, Some(node)) => Some((EventKind::Created, node)),
        (Some(node), None) => Some((gone(aspect, node), node)),
        (Some(old), Some(new)) if old.czxid != new.czxid => Some((gone(aspect, old), old)),
        (Some(old), Some(new)) => match aspect {
            Aspect::Data => (old.mzxid != new.mzxid).then_some((EventKind::DataChanged, new)),
            Aspect::Children => (old.pzxid != new.pzxid).then_some((EventKind::ChildrenChanged, new)),
        },
    }
}

/// First event of the transaction that deleted a node: if it had children, that deleted these before it.
fn gone(aspect: Aspect, node: &Node) -> EventKind {
    match aspect {
        Aspect::Children if !node.children.is_empty() => EventKind::ChildrenChanged,
        _ => EventKind::Deleted,
    }
}
