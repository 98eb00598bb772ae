//! The tree as it was a while ago, for followers that lag.

use super::node::Node;
use super::tree::Tree;
use super::watches::{Aspect, Event};
use super::{Effects, Reply, State, acl};
use docent_proto::{EventKind, Permissions, Request};
use std::collections::VecDeque;

/// The trees of the last while. Without a span nothing is kept.
#[derive(Default)]
pub(super) struct Past {
    span_ms: i64,
    /// Versions in the order of their times and transactions.
    versions: VecDeque<Version>,
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
    fn forget(&mut self, now: i64) {
        while self.versions.front().is_some_and(|version| version.until_ms + self.span_ms <= now) {
            self.versions.pop_front();
        }
    }

    /// The oldest version that may be shown; `None` when that is the present.
    fn oldest(&self, behind: Behind, now: i64) -> Option<usize> {
        let is_too_old = |version: &Version| {
            version.until_ms <= now.saturating_sub(behind.lag_ms) || version.zxid < behind.seen
        };
        let index = self.versions.partition_point(is_too_old);
        (index < self.versions.len()).then_some(index)
    }
}

impl State {
    /// Keeps the tree's versions for so long from here on; 0 for not at all.
    pub(crate) fn keep_past(&mut self, span_ms: i64) {
        self.past.span_ms = span_ms;
        if span_ms == 0 {
            self.past.versions.clear();
        }
    }

    /// Keeps the present, which is about to change.
    pub(super) fn remember(&mut self, now: i64) {
        self.past.forget(now);
        if self.past.span_ms > 0 {
            let version = Version { zxid: self.zxid, until_ms: now, tree: self.tree.clone() };
            self.past.versions.push_back(version);
        }
    }

    /// As [`apply`](Self::apply), by a server that may be behind: reads show the tree of back then. A watch
    /// that such a read sets fires right after the answer where the node has changed since: this is when the
    /// server catches up.
    pub(crate) fn apply_behind(
        &mut self,
        behind: Behind,
        session: i64,
        request: &Request,
        now: i64,
        effects: &mut Effects,
    ) -> Reply {
        let Some(index) = self.past.oldest(behind, now) else {
            return self.apply(session, request, now, effects);
        };
        if let Some(watched) = read(request) {
            self.exchange(index);
            let reply = self.apply(session, request, now, effects);
            self.exchange(index);
            effects
                .later
                .extend(watched.and_then(|(aspect, path)| self.overtaken(index, session, aspect, path)));
            self.count_events(&effects.later);
            return reply;
        }
        let mut reply = self.apply(session, request, now, effects);
        // These say nothing of the tree. Where an event tells of a change, the client knows the present.
        let says_nothing = matches!(request, Request::Ping | Request::SetWatches(_));
        if says_nothing && effects.events.is_empty() {
            reply.zxid = self.past.versions.get(index).map_or(reply.zxid, |version| version.zxid);
        }
        reply
    }

    /// Event that a watch set in a version of the past tells once the present is there. The watch is gone
    /// then.
    fn overtaken(&mut self, index: usize, session: i64, aspect: Aspect, path: &str) -> Option<Event> {
        if !self.watches.has(session, aspect, path) {
            return None;
        }
        let past = self.past.versions.range(index..).map(|version| (version.zxid, &version.tree));
        let states = past.chain([(self.zxid, &self.tree)]);
        let states: Vec<_> = states.map(|(zxid, tree)| (zxid, tree.get(path))).collect();
        let (zxid, (kind, node)) =
            states.windows(2).find_map(|pair| Some((pair[1].0, change(aspect, pair[0].1, pair[1].1)?)))?;
        let may_know = acl::check(&node.acl, Permissions::READ, self.sessions.identities(session)).is_ok();
        self.watches.remove_one(session, aspect, path);
        may_know.then(|| Event::new(session, kind, path, zxid))
    }

    /// Puts a version in the present's place, or back.
    fn exchange(&mut self, index: usize) {
        if let Some(version) = self.past.versions.get_mut(index) {
            std::mem::swap(&mut self.tree, &mut version.tree);
            std::mem::swap(&mut self.zxid, &mut version.zxid);
        }
    }
}

/// Watch that a read of the tree asks for, if any; `None` when it is no such read.
fn read(request: &Request) -> Option<Option<(Aspect, &str)>> {
    let (aspect, path, watch) = match request {
        Request::Exists { path, watch } | Request::GetData { path, watch } => (Aspect::Data, path, watch),
        Request::GetChildren { path, watch } | Request::GetChildren2 { path, watch } => {
            (Aspect::Children, path, watch)
        }
        Request::MultiRead(_) => return Some(None),
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
        (Some(node), None) => Some((EventKind::Deleted, node)),
        (Some(old), Some(new)) if old.czxid != new.czxid => Some((EventKind::Deleted, old)),
        (Some(old), Some(new)) => match aspect {
            Aspect::Data => (old.mzxid != new.mzxid).then_some((EventKind::DataChanged, new)),
            Aspect::Children => (old.pzxid != new.pzxid).then_some((EventKind::ChildrenChanged, new)),
        },
    }
}
