//! Events that watches that stay tell of the steps from a tree of the past to the present.

use super::acl;
use super::database::Database;
use super::event::Event;
use super::node::Node;
use super::recursive::RecursiveWatches;
use super::tree::Tree;
use docent_proto::{EventKind, Permissions, Request, WatchMode};
use std::collections::{BTreeMap, BTreeSet};
use std::iter::repeat_n;
use std::sync::Arc;

fn is_recursive((_, mode): &(&str, WatchMode)) -> bool {
    *mode == WatchMode::PersistentRecursive
}

/// Event of a node, which its access control list decides about telling.
struct Missed<'a> {
    kind: EventKind,
    path: &'a str,
    node: &'a Node,
}

/// Watches that stay which a request sets.
pub(crate) fn stays_of(request: &Request) -> Vec<(&str, WatchMode)> {
    match request {
        Request::AddWatch { path, mode } => vec![(path, *mode)],
        Request::SetWatches2 { persistent, recursive, .. } => {
            let all = persistent.iter().map(|path| (path.as_str(), WatchMode::Persistent));
            all.chain(recursive.iter().map(|path| (path.as_str(), WatchMode::PersistentRecursive))).collect()
        }
        _ => Vec::new(),
    }
}

impl Database {
    /// Nodes that are looked at to find what these watches and so many that come true once have missed.
    pub(crate) fn looks_for_missed(&self, version: usize, stays: &[(&str, WatchMode)], once: usize) -> usize {
        let steps = self.past.steps(version, (self.zxid, &self.tree)).count();
        let each = if stays.iter().any(is_recursive) { 2 * self.tree.len() } else { 0 };
        steps * (stays.len() + once + each)
    }

    /// Events that watches that stay, set in a version of the past, tell until the present is there, up to
    /// `most`, in the order of transactions: one change is told once, however many watches it concerns.
    pub(crate) fn missed(
        &self,
        version: usize,
        session: i64,
        watches: &[(&str, WatchMode)],
        most: usize,
    ) -> Vec<Event> {
        let identities = self.sessions.identities(session);
        let may_know = |node: &Node| acl::check(&node.acl, Permissions::READ, identities).is_ok();
        let stays = Stays::new(watches);
        let steps = self.past.steps(version, (self.zxid, &self.tree));
        let all = steps
            .flat_map(|(zxid, before, after)| stays.missed(before, after).map(move |missed| (zxid, missed)));
        let told = all.filter(|(_, missed)| may_know(missed.node)).take(most);
        let mut shared: Arc<str> = "".into();
        let event = |(zxid, missed): (i64, Missed<'_>)| {
            if *shared != *missed.path {
                shared = missed.path.into();
            }
            Event::new(session, missed.kind, Arc::clone(&shared), zxid)
        };
        told.map(event).collect()
    }
}

/// Watches that stay, of one session.
struct Stays<'a> {
    persistent: BTreeSet<&'a str>,
    recursive: RecursiveWatches,
    is_any_recursive: bool,
}

impl<'a> Stays<'a> {
    /// Of two at one path the last one counts.
    fn new(watches: &[(&'a str, WatchMode)]) -> Self {
        const ONE_SESSION: i64 = 0;
        let modes: BTreeMap<&str, WatchMode> = watches.iter().copied().collect();
        let (recursive, persistent): (Vec<_>, Vec<_>) = modes.into_iter().partition(is_recursive);
        let mut stays = Self {
            persistent: persistent.into_iter().map(|(path, _)| path).collect(),
            recursive: RecursiveWatches::default(),
            is_any_recursive: !recursive.is_empty(),
        };
        recursive.iter().for_each(|(path, _)| stays.recursive.add(ONE_SESSION, path));
        stays
    }

    /// Events of the step from one tree to the next, by a transaction.
    fn missed<'t>(&self, before: &'t Tree, after: &'t Tree) -> impl Iterator<Item = Missed<'t>>
    where
        'a: 't,
    {
        self.concerned(before, after).flat_map(move |path| {
            let tells_of_children = self.persistent.contains(path);
            let told = events(before.get(path), after.get(path))
                .filter(move |(kind, _)| tells_of_children || *kind != EventKind::ChildrenChanged);
            told.map(move |(kind, node)| Missed { kind, path, node })
        })
    }

    /// Paths of watched nodes that may have changed: children before their parents where they are gone, and
    /// behind them where they are there. With a recursive watch that takes time for all nodes of both trees.
    fn concerned<'t>(&self, before: &'t Tree, after: &'t Tree) -> impl Iterator<Item = &'t str>
    where
        'a: 't,
    {
        let all = before.iter().chain(after.iter()).filter(|_| self.is_any_recursive).map(|(path, _)| path);
        let is_changed = |path: &str| events(before.get(path), after.get(path)).next().is_some();
        let below = all.filter(|path| is_changed(path) && self.recursive.covers(path));
        let concerned: BTreeSet<&str> = below.chain(self.persistent.iter().copied()).collect();
        let (gone, there): (Vec<&str>, Vec<&str>) =
            concerned.into_iter().partition(|path| after.get(path).is_none());
        gone.into_iter().rev().chain(there)
    }
}

/// Events of a node, as many as its versions tell. They are made one by one: a version may be far ahead.
fn events<'a>(
    before: Option<&'a Node>,
    after: Option<&'a Node>,
) -> impl Iterator<Item = (EventKind, &'a Node)> {
    let same = before.zip(after).filter(|(old, new)| old.czxid == new.czxid).map(|(old, _)| old);
    let old = before.filter(|_| same.is_none());
    // Its children were deleted by the same transaction, before it.
    let emptied =
        old.into_iter().flat_map(|old| repeat_n((EventKind::ChildrenChanged, old), old.children.len()));
    let deleted = old.map(|old| (EventKind::Deleted, old));
    let created = after.filter(|_| same.is_none()).map(|new| (EventKind::Created, new));
    let changes = after.into_iter().flat_map(move |new| {
        let (old, stat) = (same.map(Node::stat).unwrap_or_default(), new.stat());
        let times = |now: i32, then: i32| usize::try_from(now.wrapping_sub(then)).unwrap_or(0);
        let data = repeat_n((EventKind::DataChanged, new), times(stat.version, old.version));
        data.chain(repeat_n((EventKind::ChildrenChanged, new), times(stat.cversion, old.cversion)))
    });
    emptied.chain(deleted).chain(created).chain(changes)
}
