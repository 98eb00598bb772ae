use super::acl;
use super::event::Event;
use super::sessions::Sessions;
use docent_proto::{Acl, EventKind, Permissions, WatchKind};
use std::collections::{BTreeSet, HashMap};

/// Aspect of a node that a watch looks at.
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

/// The one-shot watches of all links. A session has one link at most, so a watch is known by its session.
#[derive(Debug, Clone, Default)]
pub(crate) struct Watches {
    by_path: HashMap<(Aspect, String), BTreeSet<i64>>,
    by_session: HashMap<i64, BTreeSet<(Aspect, String)>>,
}

impl Watches {
    pub(crate) fn add(&mut self, session: i64, aspect: Aspect, path: &str) {
        self.by_path.entry((aspect, path.to_owned())).or_default().insert(session);
        self.by_session.entry(session).or_default().insert((aspect, path.to_owned()));
    }

    pub(crate) fn has(&self, session: i64, aspect: Aspect, path: &str) -> bool {
        self.by_path.get(&(aspect, path.to_owned())).is_some_and(|sessions| sessions.contains(&session))
    }

    /// Removes watches of a kind; false when there was none.
    pub(crate) fn remove(&mut self, session: i64, path: &str, kind: WatchKind) -> bool {
        let aspects: &[Aspect] = match kind {
            WatchKind::Children => &[Aspect::Children],
            WatchKind::Data => &[Aspect::Data],
            WatchKind::Any => &[Aspect::Children, Aspect::Data],
        };
        aspects.iter().filter(|aspect| self.remove_one(session, **aspect, path)).count() > 0
    }

    /// Removes one watch; false when it was not there.
    pub(crate) fn remove_one(&mut self, session: i64, aspect: Aspect, path: &str) -> bool {
        let key = (aspect, path.to_owned());
        let Some(sessions) = self.by_path.get_mut(&key) else { return false };
        let removed = sessions.remove(&session);
        if sessions.is_empty() {
            self.by_path.remove(&key);
        }
        self.forget(session, &key);
        removed
    }

    /// Removes all watches of a session, whose link is gone.
    pub(crate) fn remove_session(&mut self, session: i64) {
        for key in self.by_session.remove(&session).unwrap_or_default() {
            if let Some(sessions) = self.by_path.get_mut(&key) {
                sessions.remove(&session);
                if sessions.is_empty() {
                    self.by_path.remove(&key);
                }
            }
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
        let watching = self.take(Aspect::Children, node.path);
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
        let sessions = self.take(aspect, node.path);
        node.tell(sessions.iter(), kind, events);
        sessions
    }

    fn take(&mut self, aspect: Aspect, path: &str) -> BTreeSet<i64> {
        let key = (aspect, path.to_owned());
        let sessions = self.by_path.remove(&key).unwrap_or_default();
        for session in &sessions {
            self.forget(*session, &key);
        }
        sessions
    }

    fn forget(&mut self, session: i64, key: &(Aspect, String)) {
        if let Some(keys) = self.by_session.get_mut(&session) {
            keys.remove(key);
            if keys.is_empty() {
                self.by_session.remove(&session);
            }
        }
    }

    /// The watches on data, each as path and session.
    pub(crate) fn on_data(&self) -> impl Iterator<Item = (&str, i64)> {
        let on_data = self.by_path.iter().filter(|((aspect, _), _)| *aspect == Aspect::Data);
        on_data.flat_map(|((_, path), sessions)| sessions.iter().map(|id| (path.as_str(), *id)))
    }

    /// Watches of one session.
    pub(crate) fn count_of(&self, session: i64) -> usize {
        self.by_session.get(&session).map_or(0, BTreeSet::len)
    }

    /// Watches of all sessions.
    pub(crate) fn count(&self) -> usize {
        self.by_session.values().map(BTreeSet::len).sum()
    }
}
