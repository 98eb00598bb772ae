use crate::session::watch_requests::WatchLists;
use crate::session::{Fired, Registration, SessionEnd, WatchKind};
use docent_proto::{EventKind, WatchEvent, Watches};
use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap};
use std::mem;
use std::sync::Arc;
use tokio::sync::oneshot;

/// The one-shot watches of a session: at most one at the server for each path and kind, with many subscribers
/// in the client.
#[derive(Debug, Default)]
pub(super) struct WatchTable {
    next_id: u64,
    data: Table,
    exist: Table,
    child: Table,
}

/// The subscribers of each path.
type Table = HashMap<Arc<str>, Subscribers>;

/// Subscribers of one path by their numbers: usually one, sometimes many, each with its own channel.
#[derive(Debug)]
enum Subscribers {
    One(u64, oneshot::Sender<Fired>),
    Many(BTreeMap<u64, oneshot::Sender<Fired>>),
}

impl Subscribers {
    fn insert(&mut self, id: u64, fired: oneshot::Sender<Fired>) {
        match mem::replace(self, Self::Many(BTreeMap::new())) {
            Self::One(first, other) => *self = Self::Many(BTreeMap::from([(first, other), (id, fired)])),
            Self::Many(mut many) => {
                many.insert(id, fired);
                *self = Self::Many(many);
            }
        }
    }

    /// Removes a subscriber. Returns true if none is left.
    fn remove(&mut self, id: u64) -> bool {
        match self {
            Self::One(only, _) => *only == id,
            Self::Many(many) => {
                many.remove(&id);
                many.is_empty()
            }
        }
    }

    fn into_senders(self) -> impl Iterator<Item = oneshot::Sender<Fired>> {
        let (one, many) = match self {
            Self::One(_, fired) => (Some(fired), BTreeMap::new()),
            Self::Many(many) => (None, many),
        };
        one.into_iter().chain(many.into_values())
    }
}

/// Watches that fired, to be delivered once the machine is no longer locked.
pub(super) type Fires = Vec<(oneshot::Sender<Fired>, Fired)>;

impl WatchTable {
    fn table(&mut self, kind: WatchKind) -> &mut Table {
        match kind {
            WatchKind::Data => &mut self.data,
            WatchKind::Exist => &mut self.exist,
            // Persistent watches are in a separate table.
            WatchKind::Child | WatchKind::Persistent => &mut self.child,
        }
    }

    /// Returns true until this subscriber's watch fires.
    pub(super) fn waits(&self, Registration { id, path, kind, .. }: &Registration) -> bool {
        let table = match kind {
            WatchKind::Data => &self.data,
            WatchKind::Exist => &self.exist,
            WatchKind::Child | WatchKind::Persistent => &self.child,
        };
        match table.get(path) {
            Some(Subscribers::One(only, _)) => only == id,
            Some(Subscribers::Many(many)) => many.contains_key(id),
            None => false,
        }
    }

    /// Returns true while a subscriber waits for a watch on the path.
    pub(super) fn has(&self, path: &str) -> bool {
        [&self.data, &self.exist, &self.child].into_iter().any(|table| table.contains_key(path))
    }

    /// Returns true while a subscriber waits for a watch on the children of the path.
    pub(super) fn has_on_children(&self, path: &str) -> bool {
        self.child.contains_key(path)
    }

    /// Adds a subscriber to a watch that the server has just set.
    pub(super) fn register(
        &mut self,
        path: impl Into<Arc<str>>,
        kind: WatchKind,
    ) -> (u64, oneshot::Receiver<Fired>) {
        self.next_id += 1;
        let id = self.next_id;
        let (fired, receiver) = oneshot::channel();
        match self.table(kind).entry(path.into()) {
            Entry::Occupied(mut subscribers) => subscribers.get_mut().insert(id, fired),
            Entry::Vacant(place) => drop(place.insert(Subscribers::One(id, fired))),
        }
        (id, receiver)
    }

    /// Removes a subscriber. Returns true if the server keeps a watch that has no subscriber left.
    pub(super) fn unregister(&mut self, id: u64, path: &str, kind: WatchKind) -> bool {
        let table = self.table(kind);
        let Some(subscribers) = table.get_mut(path) else { return false };
        if !subscribers.remove(id) {
            return false;
        }
        table.remove(path);
        match kind {
            // The server keeps watches of both kinds in one table, and removes both together.
            WatchKind::Data => !self.exist.contains_key(path),
            WatchKind::Exist => !self.data.contains_key(path),
            WatchKind::Child | WatchKind::Persistent => true,
        }
    }

    /// Fires the watches that `event` uses up.
    pub(super) fn fire(&mut self, event: &WatchEvent, fires: &mut Fires) {
        let kinds: &[WatchKind] = match event.kind {
            EventKind::Created | EventKind::DataChanged => &[WatchKind::Data, WatchKind::Exist],
            EventKind::Deleted => &[WatchKind::Data, WatchKind::Exist, WatchKind::Child],
            EventKind::ChildrenChanged => &[WatchKind::Child],
        };
        for kind in kinds {
            let Some(subscribers) = self.table(*kind).remove(&*event.path) else { continue };
            fires.extend(subscribers.into_senders().map(|fired| (fired, Fired::Event(event.kind))));
        }
    }

    /// Ends every watch with the session.
    pub(super) fn end(&mut self, end: SessionEnd, fires: &mut Fires) {
        for table in [&mut self.data, &mut self.exist, &mut self.child] {
            let subscribers = mem::take(table).into_values().flat_map(Subscribers::into_senders);
            fires.extend(subscribers.map(|fired| (fired, Fired::Ended(end))));
        }
    }

    /// Returns all watches for a new link, in requests of a size that servers accept. Omits watches on the
    /// children of paths with a persistent watch, because those are restored after the persistent one.
    pub(super) fn restore(
        &self,
        relative_zxid: i64,
        request_limit: usize,
        persists: impl Fn(&str) -> bool,
    ) -> Vec<Watches> {
        let mut lists = WatchLists::new(relative_zxid, request_limit);
        self.data.keys().for_each(|path| lists.add(|watches| &mut watches.data, path.to_string()));
        self.exist.keys().for_each(|path| lists.add(|watches| &mut watches.exist, path.to_string()));
        let children = self.child.keys().filter(|path| !persists(path));
        children.for_each(|path| lists.add(|watches| &mut watches.child, path.to_string()));
        lists.finish()
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.data.len() + self.exist.len() + self.child.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::watch_requests::CHUNK;

    fn event(kind: EventKind, path: &str) -> WatchEvent {
        WatchEvent { kind, path: path.to_owned() }
    }

    #[test]
    fn one_event_reaches_every_subscriber_of_the_path_once() {
        let mut table = WatchTable::default();
        let (_, mut first) = table.register("/a", WatchKind::Data);
        let (_, mut second) = table.register("/a", WatchKind::Data);
        let (_, mut other) = table.register("/b", WatchKind::Data);
        let mut fires = Vec::new();
        table.fire(&event(EventKind::DataChanged, "/a"), &mut fires);
        for (fired, event) in fires.drain(..) {
            fired.send(event).unwrap();
        }
        assert_eq!(first.try_recv(), Ok(Fired::Event(EventKind::DataChanged)));
        assert_eq!(second.try_recv(), Ok(Fired::Event(EventKind::DataChanged)));
        assert!(other.try_recv().is_err());
        assert_eq!(table.len(), 1);
    }

    #[test]
    fn a_change_of_children_leaves_watches_on_data_alone() {
        let mut table = WatchTable::default();
        let (_, _data) = table.register("/a", WatchKind::Data);
        let (_, _child) = table.register("/a", WatchKind::Child);
        table.fire(&event(EventKind::ChildrenChanged, "/a"), &mut Vec::new());
        assert_eq!(table.data.len(), 1);
        assert!(table.child.is_empty());
    }

    #[test]
    fn the_server_drops_a_watch_only_when_no_subscriber_of_its_table_is_left() {
        let mut table = WatchTable::default();
        let (first, _a) = table.register("/a", WatchKind::Data);
        let (second, _b) = table.register("/a", WatchKind::Data);
        let (third, _c) = table.register("/a", WatchKind::Exist);
        assert!(!table.unregister(first, "/a", WatchKind::Data));
        assert!(!table.unregister(second, "/a", WatchKind::Data), "data and existence share a table");
        assert!(table.unregister(third, "/a", WatchKind::Exist));
        assert!(!table.unregister(third, "/a", WatchKind::Exist), "the subscriber was already removed");
    }

    #[test]
    fn watches_are_restored_in_requests_that_servers_take() {
        let mut table = WatchTable::default();
        for n in 0..4_000 {
            table
                .register(format!("/{n:0>100}"), if n % 2 == 0 { WatchKind::Data } else { WatchKind::Child });
        }
        let chunks = table.restore(7, 1024 * 1024, |_| false);
        assert!(chunks.len() >= 4);
        for chunk in &chunks {
            assert_eq!(chunk.relative_zxid, 7);
            let bytes: usize = chunk.data.iter().chain(&chunk.child).map(String::len).sum();
            assert!(bytes <= CHUNK);
        }
        assert_eq!(chunks.iter().map(|c| c.data.len() + c.child.len()).sum::<usize>(), 4_000);
        for chunk in table.restore(7, 64 * 1024, |_| false) {
            let bytes: usize = chunk.data.iter().chain(&chunk.child).map(|path| 4 + path.len()).sum();
            assert!(bytes < 64 * 1024, "the servers' limit applies, too");
        }
    }
}
