use super::acl;
use super::event::Event;
use super::sessions::Sessions;
use super::watch_table::{Mode, WatchTable};
use docent_proto::{Acl, EventKind, Permissions, WatchKind};
use std::collections::{BTreeSet, HashMap};

/// Aspect of a node that a watch looks at. A watch that stays looks at both.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Aspect {
    /// Data and existence.
    Data,
    /// Children.
    Children,
}

/// Audience of a change of a node: the clients that may read it.
#[derive(Clone, Copy)]
pub(crate) struct Audience<'a> {
    pub(crate) path: &'a str,
    pub(crate) acl: &'a [Acl],
    pub(crate) sessions: &'a Sessions,
    /// The transaction of the change.
    pub(crate) zxid: i64,
}

impl Audience<'_> {
    /// Tells the sessions of `watching` that may read the node. The watches of the others are gone all the
    /// same.
    fn tell<'s>(self, watching: impl Iterator<Item = &'s i64>, kind: EventKind, events: &mut Vec<Event>) {
        let may_read =
            |id: &&i64| acl::check(self.acl, Permissions::READ, self.sessions.identities(**id)).is_ok();
        events.extend(watching.filter(may_read).map(|id| Event::new(*id, kind, self.path, self.zxid)));
    }
}

/// The watches of all links. A session has one link at most, so a watch is known by its session.
#[derive(Debug, Clone, Default)]
pub(crate) struct Watches {
    data: WatchTable,
    children: WatchTable,
    by_session: HashMap<i64, BTreeSet<(Aspect, String)>>,
}

impl Watches {
    /// Sets a watch. As in ZooKeeper before 3.9 it takes the place of one of another mode: who reads a node
    /// and leaves a watch on which a persistent one is set has one that is gone once it came true.
    pub(crate) fn add(&mut self, session: i64, aspect: Aspect, path: &str, mode: Mode) {
        self.table(aspect).add(session, path, mode);
        self.by_session.entry(session).or_default().insert((aspect, path.to_owned()));
    }

    /// Mode of the watch that a session has.
    pub(crate) fn get(&self, session: i64, aspect: Aspect, path: &str) -> Option<Mode> {
        match aspect {
            Aspect::Data => self.data.get(session, path),
            Aspect::Children => self.children.get(session, path),
        }
    }

    /// True when a watch of a kind is set, by whichever session: ZooKeeper does not look at that.
    pub(crate) fn is_watched(&self, path: &str, kind: WatchKind) -> bool {
        let table = |aspect: &Aspect| match aspect {
            Aspect::Data => &self.data,
            Aspect::Children => &self.children,
        };
        aspects(kind).iter().any(|aspect| table(aspect).is_watched(path))
    }

    /// Removes watches of a kind; false when there was none.
    pub(crate) fn remove(&mut self, session: i64, path: &str, kind: WatchKind) -> bool {
        aspects(kind).iter().filter(|aspect| self.remove_one(session, **aspect, path)).count() > 0
    }

    /// Removes one watch; false when it was not there.
    pub(crate) fn remove_one(&mut self, session: i64, aspect: Aspect, path: &str) -> bool {
        let removed = self.table(aspect).remove(session, path);
        self.forget(session, aspect, path);
        removed
    }

    /// Removes all watches of a session, whose link is gone.
    pub(crate) fn remove_session(&mut self, session: i64) {
        for (aspect, path) in self.by_session.remove(&session).unwrap_or_default() {
            self.table(aspect).remove(session, &path);
        }
    }

    /// A node was created.
    pub(crate) fn created(&mut self, node: Audience<'_>, parent: Audience<'_>, events: &mut Vec<Event>) {
        self.fire(Aspect::Data, node, EventKind::Created, events);
        self.fire(Aspect::Children, parent, EventKind::ChildrenChanged, events);
    }

    /// A node's data was set.
    pub(crate) fn data_set(&mut self, node: Audience<'_>, events: &mut Vec<Event>) {
        self.fire(Aspect::Data, node, EventKind::DataChanged, events);
    }

    /// A node was deleted. A session that watched both its data and its children is told once.
    pub(crate) fn deleted(&mut self, node: Audience<'_>, parent: Audience<'_>, events: &mut Vec<Event>) {
        let told = self.fire(Aspect::Data, node, EventKind::Deleted, events);
        let watching = self.trigger(Aspect::Children, node.path, EventKind::Deleted);
        node.tell(watching.difference(&told), EventKind::Deleted, events);
        self.fire(Aspect::Children, parent, EventKind::ChildrenChanged, events);
    }

    fn fire(
        &mut self,
        aspect: Aspect,
        node: Audience<'_>,
        kind: EventKind,
        events: &mut Vec<Event>,
    ) -> BTreeSet<i64> {
        let sessions = self.trigger(aspect, node.path, kind);
        node.tell(sessions.iter(), kind, events);
        sessions
    }

    /// The sessions whose watches came true.
    fn trigger(&mut self, aspect: Aspect, path: &str, kind: EventKind) -> BTreeSet<i64> {
        let triggered = self.table(aspect).trigger(path, kind);
        for session in triggered.spent {
            self.forget(session, aspect, path);
        }
        triggered.sessions
    }

    fn table(&mut self, aspect: Aspect) -> &mut WatchTable {
        match aspect {
            Aspect::Data => &mut self.data,
            Aspect::Children => &mut self.children,
        }
    }

    fn forget(&mut self, session: i64, aspect: Aspect, path: &str) {
        if let Some(keys) = self.by_session.get_mut(&session) {
            keys.remove(&(aspect, path.to_owned()));
            if keys.is_empty() {
                self.by_session.remove(&session);
            }
        }
    }

    /// The watches on data, each as path and session.
    pub(crate) fn on_data(&self) -> impl Iterator<Item = (&str, i64)> {
        self.data.iter()
    }

    /// Watches of one session. One that stays counts twice, once for each aspect.
    pub(crate) fn count_of(&self, session: i64) -> usize {
        self.by_session.get(&session).map_or(0, BTreeSet::len)
    }

    /// Watches of all sessions.
    pub(crate) fn count(&self) -> usize {
        self.by_session.values().map(BTreeSet::len).sum()
    }
}

fn aspects(kind: WatchKind) -> &'static [Aspect] {
    match kind {
        WatchKind::Children => &[Aspect::Children],
        WatchKind::Data => &[Aspect::Data],
        WatchKind::Any => &[Aspect::Children, Aspect::Data],
    }
}
