//! Events that a watch that stays tells of the steps from a tree of the past to the present.

use super::acl;
use super::database::Database;
use super::event::Event;
use super::node::Node;
use super::tree::Tree;
use docent_proto::{EventKind, Permissions, Request, WatchMode};
use std::collections::BTreeSet;
use std::iter::repeat_n;
use std::ops::Bound;
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
    /// Nodes that [`missed`](Self::missed) looks at.
    pub(crate) fn looks_for_missed(&self, version: usize, watches: &[(&str, WatchMode)]) -> usize {
        let steps = self.past.steps(version, (self.zxid, &self.tree)).count();
        let each = if watches.iter().any(is_recursive) { 2 * self.tree.len() } else { 0 };
        steps * (watches.len() + each)
    }

    /// Events that watches that stay, set in a version of the past, tell until the present is there, up to
    /// `most`.
    pub(crate) fn missed(
        &self,
        version: usize,
        session: i64,
        watches: &[(&str, WatchMode)],
        most: usize,
    ) -> Vec<Event> {
        let identities = self.sessions.identities(session);
        let may_know = |node: &Node| acl::check(&node.acl, Permissions::READ, identities).is_ok();
        let looks = watches.iter().any(is_recursive);
        let steps = self.past.steps(version, (self.zxid, &self.tree));
        let steps: Vec<Step<'_>> =
            steps.map(|(zxid, before, after)| Step::new(zxid, before, after, looks)).collect();
        let pairs = watches.iter().flat_map(|watch| steps.iter().map(move |step| (step, watch)));
        let all = pairs
            .flat_map(|(step, (path, mode))| step.missed(path, *mode).map(move |missed| (step.zxid, missed)));
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

/// Step from one tree to the next, by a transaction.
struct Step<'a> {
    zxid: i64,
    before: &'a Tree,
    after: &'a Tree,
    /// Paths of the nodes that are not the same in both, if they are asked for.
    changed: BTreeSet<&'a str>,
}

impl<'a> Step<'a> {
    /// `looks_for_changes` takes time for all nodes of both trees, once for all watches.
    fn new(zxid: i64, before: &'a Tree, after: &'a Tree, looks_for_changes: bool) -> Self {
        let is_changed = |path: &&str| events(before.get(path), after.get(path)).next().is_some();
        let all = before.iter().chain(after.iter()).filter(|_| looks_for_changes);
        Self { zxid, before, after, changed: all.map(|(path, _)| path).filter(is_changed).collect() }
    }

    /// Events that a watch tells of this step.
    fn missed(&self, path: &'a str, mode: WatchMode) -> impl Iterator<Item = Missed<'a>> {
        let is_recursive = mode == WatchMode::PersistentRecursive;
        let paths = if is_recursive { self.changed_at_or_below(path) } else { vec![path] };
        let (before, after) = (self.before, self.after);
        let all = paths.into_iter().flat_map(move |path| {
            let events = events(before.get(path), after.get(path));
            events.map(move |(kind, node)| Missed { kind, path, node })
        });
        all.filter(move |missed| !is_recursive || missed.kind != EventKind::ChildrenChanged)
    }

    /// Children are deleted before their parents, and created after them.
    fn changed_at_or_below(&self, path: &str) -> Vec<&'a str> {
        let is_below = |node: &&str| match node.strip_prefix(path) {
            Some(rest) => rest.is_empty() || rest.starts_with('/') || path == "/",
            None => false,
        };
        let from = self.changed.range::<str, _>((Bound::Included(path), Bound::Unbounded));
        let below = from.copied().take_while(|node| node.starts_with(path)).filter(is_below);
        let (gone, there): (Vec<&str>, Vec<&str>) = below.partition(|path| self.after.get(path).is_none());
        gone.into_iter().rev().chain(there).collect()
    }
}

/// Events of a node, as many as its versions tell. They are made one by one: a version may be far ahead.
fn events<'a>(
    before: Option<&'a Node>,
    after: Option<&'a Node>,
) -> impl Iterator<Item = (EventKind, &'a Node)> {
    let same = before.zip(after).filter(|(old, new)| old.czxid == new.czxid).map(|(old, _)| old);
    let deleted = before.filter(|_| same.is_none()).map(|old| (EventKind::Deleted, old));
    let created = after.filter(|_| same.is_none()).map(|new| (EventKind::Created, new));
    let changes = after.into_iter().flat_map(move |new| {
        let (old, stat) = (same.map(Node::stat).unwrap_or_default(), new.stat());
        let times = |now: i32, then: i32| usize::try_from(now.wrapping_sub(then)).unwrap_or(0);
        let data = repeat_n((EventKind::DataChanged, new), times(stat.version, old.version));
        data.chain(repeat_n((EventKind::ChildrenChanged, new), times(stat.cversion, old.cversion)))
    });
    deleted.into_iter().chain(created).chain(changes)
}
