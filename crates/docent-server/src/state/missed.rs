//! Events that a watch that stays tells of the steps from a tree of the past to the present.

use super::node::Node;
use super::tree::Tree;
use docent_proto::{EventKind, Request, Stat, WatchMode};
use std::collections::BTreeSet;

/// Event of a node, which its access control list decides about telling.
pub(crate) struct Missed<'a> {
    pub(crate) kind: EventKind,
    pub(crate) path: &'a str,
    pub(crate) node: &'a Node,
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

/// Events that a watch tells of the step from one tree to the next.
pub(crate) fn missed<'a>(
    before: &'a Tree,
    after: &'a Tree,
    path: &'a str,
    mode: WatchMode,
) -> Vec<Missed<'a>> {
    let of = |path: &'a str| {
        let events = events(before.get(path), after.get(path)).into_iter();
        events.map(move |(kind, node)| Missed { kind, path, node })
    };
    if mode == WatchMode::Persistent {
        return of(path).collect();
    }
    let all: BTreeSet<&str> = below(before, path).chain(below(after, path)).collect();
    let (gone, there): (Vec<&str>, Vec<&str>) = all.into_iter().partition(|path| after.get(path).is_none());
    // Children are deleted before their parents, and created after them.
    let in_order = gone.into_iter().rev().chain(there);
    in_order.flat_map(of).filter(|missed| missed.kind != EventKind::ChildrenChanged).collect()
}

/// The paths at and below `path`.
fn below<'a>(tree: &'a Tree, path: &str) -> impl Iterator<Item = &'a str> {
    let is_below = move |node: &&str| match node.strip_prefix(path) {
        Some(rest) => rest.is_empty() || rest.starts_with('/') || path == "/",
        None => false,
    };
    tree.iter().map(|(path, _)| path).filter(is_below)
}

fn events<'a>(before: Option<&'a Node>, after: Option<&'a Node>) -> Vec<(EventKind, &'a Node)> {
    let mut events = Vec::new();
    let same = before.zip(after).filter(|(old, new)| old.czxid == new.czxid).map(|(old, _)| old);
    if same.is_none() {
        events.extend(before.map(|old| (EventKind::Deleted, old)));
        events.extend(after.map(|new| (EventKind::Created, new)));
    }
    let Some(new) = after else { return events };
    let (old, stat) = (same.map(Node::stat).unwrap_or_default(), new.stat());
    let times =
        |count: fn(&Stat) -> i32| usize::try_from(count(&stat).wrapping_sub(count(&old))).unwrap_or(0);
    events.extend(std::iter::repeat_n((EventKind::DataChanged, new), times(|stat| stat.version)));
    events.extend(std::iter::repeat_n((EventKind::ChildrenChanged, new), times(|stat| stat.cversion)));
    events
}
