use super::acl;
use super::event::Event;
use super::events::Events;
use super::sessions::Sessions;
use super::watch_table::{Mode, Triggered, WatchTable};
use docent_proto::{Acl, EventKind, Permissions, WatchKind};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Aspect of a node that a watch observes. A persistent watch observes both.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Aspect {
    /// Data and existence.
    Data,
    /// Children.
    Children,
}

/// A changed node, with what is needed to notify the clients that may read it.
#[derive(Clone, Copy)]
pub(crate) struct Audience<'a> {
    pub(crate) path: &'a str,
    pub(crate) acl: &'a [Acl],
    pub(crate) sessions: &'a Sessions,
    /// The transaction of the change.
    pub(crate) zxid: i64,
}

impl Audience<'_> {
    /// Creates events for those sessions of `watching` that may read the node. The watches of other sessions
    /// are removed nevertheless.
    fn notify<'s>(self, watching: impl Iterator<Item = &'s i64>, kind: EventKind, events: &mut Events) {
        let may_read = |id: &&i64| {
            planted!(EventWithoutPermission)
                || acl::check(self.acl, Permissions::READ, self.sessions.identities(**id)).is_ok()
        };
        let mut shared: Option<Arc<str>> = None;
        for id in watching.filter(may_read) {
            let path = Arc::clone(shared.get_or_insert_with(|| self.path.into()));
            events.push(Event::new(*id, kind, path, self.zxid));
        }
    }
}

/// The watches of all links. A session has at most one link, so the session identifies the watch.
#[derive(Debug, Clone, Default)]
pub(crate) struct Watches {
    data: WatchTable,
    children: WatchTable,
    by_session: BTreeMap<i64, Own>,
    bytes: usize,
}

/// The watches of one session.
#[derive(Debug, Clone, Default)]
struct Own {
    watches: BTreeSet<(Aspect, String)>,
    bytes: usize,
}

impl Watches {
    /// Sets a watch, which replaces a watch of another mode, as in ZooKeeper before 3.9. For example, a read
    /// that sets a watch turns a persistent watch into a one-shot watch.
    pub(crate) fn add(&mut self, session: i64, aspect: Aspect, path: &str, mode: Mode) {
        self.table(aspect).add(session, path, mode);
        let own = self.by_session.entry(session).or_default();
        if own.watches.insert((aspect, path.to_owned())) {
            own.bytes += weight(path);
            self.bytes += weight(path);
        }
    }

    /// Returns the mode of a session's watch.
    pub(crate) fn get(&self, session: i64, aspect: Aspect, path: &str) -> Option<Mode> {
        match aspect {
            Aspect::Data => self.data.get(session, path),
            Aspect::Children => self.children.get(session, path),
        }
    }

    /// Returns whether any session has a watch of this kind. As in ZooKeeper, the session does not matter.
    pub(crate) fn is_watched(&self, path: &str, kind: WatchKind) -> bool {
        let table = |aspect: &Aspect| match aspect {
            Aspect::Data => &self.data,
            Aspect::Children => &self.children,
        };
        aspects(kind).iter().any(|aspect| table(aspect).is_watched(path))
    }

    /// Removes watches of a kind. Returns `false` if there was none.
    pub(crate) fn remove(&mut self, session: i64, path: &str, kind: WatchKind) -> bool {
        if planted!(EventAfterRemoveWatches) {
            return aspects(kind).iter().any(|aspect| self.get(session, *aspect, path).is_some());
        }
        aspects(kind).iter().filter(|aspect| self.remove_one(session, **aspect, path)).count() > 0
    }

    /// Removes one watch. Returns `false` if it was not set.
    pub(crate) fn remove_one(&mut self, session: i64, aspect: Aspect, path: &str) -> bool {
        let removed = self.table(aspect).remove(session, path);
        self.forget(session, aspect, path);
        removed
    }

    /// Removes all watches of a session whose link is closed.
    pub(crate) fn remove_session(&mut self, session: i64) {
        let Some(own) = self.by_session.remove(&session) else { return };
        self.bytes -= own.bytes;
        for (aspect, path) in own.watches {
            self.table(aspect).remove(session, &path);
        }
    }

    /// Creates the events for a change of a node.
    pub(crate) fn notify(&mut self, node: Audience<'_>, kind: EventKind, events: &mut Events) {
        self.notify_by(|table| table.trigger(node.path, kind), node, kind, events);
    }

    /// Does the same as [`notify`](Self::notify), for the watches of one session.
    pub(crate) fn notify_session(
        &mut self,
        session: i64,
        node: Audience<'_>,
        kind: EventKind,
        events: &mut Events,
    ) {
        self.notify_by(|table| table.trigger_of(session, node.path, kind), node, kind, events);
    }

    /// Creates events for the sessions whose watches fire. A session that watches both a node's data and its
    /// children gets one event for the node's deletion.
    fn notify_by(
        &mut self,
        trigger: impl Fn(&mut WatchTable) -> Triggered,
        node: Audience<'_>,
        kind: EventKind,
        events: &mut Events,
    ) {
        let mut notified = BTreeSet::new();
        for aspect in aspects_of(kind) {
            let triggered = trigger(self.table(*aspect));
            for session in triggered.spent {
                self.forget(session, *aspect, node.path);
            }
            let is_lost =
                planted!(LostWatchOnDelete) && aspects_of(kind).len() > 1 && *aspect == Aspect::Children;
            if !is_lost {
                node.notify(triggered.sessions.difference(&notified), kind, events);
            }
            // Otherwise the rest of the transaction would find their watches again and again.
            for flooded in events.take_flooded() {
                self.remove_session(flooded);
            }
            notified = if planted!(DeletionToldTwice) { BTreeSet::new() } else { triggered.sessions };
        }
    }

    fn table(&mut self, aspect: Aspect) -> &mut WatchTable {
        match aspect {
            Aspect::Data => &mut self.data,
            Aspect::Children => &mut self.children,
        }
    }

    fn forget(&mut self, session: i64, aspect: Aspect, path: &str) {
        let Some(own) = self.by_session.get_mut(&session) else { return };
        if own.watches.remove(&(aspect, path.to_owned())) {
            own.bytes -= weight(path);
            self.bytes -= weight(path);
        }
        if own.watches.is_empty() {
            self.by_session.remove(&session);
        }
    }

    /// Iterates over the sessions that watch the data of each path, in the order of the paths.
    pub(crate) fn on_data(&self) -> impl Iterator<Item = (&str, impl Iterator<Item = i64>)> {
        self.data.iter()
    }

    /// Iterates over the paths whose data each session watches, both in order.
    pub(crate) fn on_data_by_session(&self) -> impl Iterator<Item = (i64, impl Iterator<Item = &str>)> {
        self.by_session.iter().filter_map(|(session, own)| {
            // Watches on data are sorted first.
            let mut paths = own.watches.iter().map_while(|(aspect, path)| match aspect {
                Aspect::Data => Some(path.as_str()),
                Aspect::Children => None,
            });
            let first = paths.next()?;
            Some((*session, std::iter::once(first).chain(paths)))
        })
    }

    /// Returns the number of paths whose data is watched, and the number of watches on them.
    pub(crate) fn count_on_data(&self) -> (usize, usize) {
        (self.data.path_count(), self.data.count())
    }

    /// Returns the number of watches of one session. A persistent watch counts twice, once for each aspect.
    pub(crate) fn count_of(&self, session: i64) -> usize {
        self.by_session.get(&session).map_or(0, |own| own.watches.len())
    }

    /// Returns the bytes of the watches of one session, as the limit counts them.
    pub(crate) fn bytes_of(&self, session: i64) -> usize {
        self.by_session.get(&session).map_or(0, |own| own.bytes)
    }

    /// Returns the bytes of the watches of all sessions.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Returns the number of watches of all sessions.
    pub(crate) fn count(&self) -> usize {
        self.data.count() + self.children.count()
    }
}

/// Returns the bytes that a watch takes up. Its path is stored twice, and that of a recursive watch also as a
/// fingerprint.
pub(crate) fn weight(path: &str) -> usize {
    const PLACES: usize = 640;
    PLACES + 2 * path.len()
}

/// Returns the aspects whose watches report a change of a node.
fn aspects_of(kind: EventKind) -> &'static [Aspect] {
    match kind {
        EventKind::ChildrenChanged => &[Aspect::Children],
        EventKind::Deleted => &[Aspect::Data, Aspect::Children],
        _ => &[Aspect::Data],
    }
}

fn aspects(kind: WatchKind) -> &'static [Aspect] {
    match kind {
        WatchKind::Children => &[Aspect::Children],
        WatchKind::Data => &[Aspect::Data],
        WatchKind::Any => &[Aspect::Children, Aspect::Data],
    }
}
