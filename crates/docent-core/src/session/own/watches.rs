use crate::session::watch::split;
use crate::session::{Fired, PersistentSignal, Registration, SessionEnd, WatchKind};
use docent_proto::{EventKind, WatchEvent, Watches, parent};
use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::mem;
use std::sync::Arc;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
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
        let data = self.data.keys().map(|path| (WatchKind::Data, path));
        let exist = self.exist.keys().map(|path| (WatchKind::Exist, path));
        let children = self.child.keys().filter(|path| !persists(path)).map(|path| (WatchKind::Child, path));
        let watches = data.chain(exist).chain(children);
        let request = |list: Vec<(WatchKind, &Arc<str>)>| {
            let of = |kind| list.iter().filter(move |one| one.0 == kind).map(|(_, path)| path.to_string());
            let [data, exist, child] =
                [WatchKind::Data, WatchKind::Exist, WatchKind::Child].map(|kind| of(kind).collect());
            Watches { relative_zxid, data, exist, child }
        };
        split(watches, |(_, path)| path.len(), request_limit).into_iter().map(request).collect()
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.data.len() + self.exist.len() + self.child.len()
    }
}

/// The persistent recursive watches of a session: at most one at the server for each path, with many
/// subscribers in the client.
///
/// Servers before 3.9 keep, in each of their tables, one mode for all watches of a link on a path. A one-shot
/// watch on data that is set after a persistent one replaces it, and a removal deletes both. Therefore, while
/// a persistent watch is at the server, no other watch on data is set or removed on that path, and its events
/// serve the one-shot watches too. Changes of the set of children are reported by separate watches in the
/// other table, because a persistent watch reports a child by that child's permissions, which this client may
/// not have.
#[derive(Debug, Default)]
pub(super) struct PersistentWatches {
    next_id: u64,
    subscribers: HashMap<String, SubscribersById>,
    /// Paths with a persistent watch at the server of the link, according to the requests written.
    pub(super) at_server: HashSet<String>,
    /// Paths of watches without a subscriber, which serve one-shot watches.
    pub(super) orphans: HashSet<String>,
}

type Subscriber = UnboundedSender<PersistentSignal>;
type SubscribersById = BTreeMap<u64, Subscriber>;

/// Notifications to deliver once the machine is no longer locked.
pub(super) type PersistentFires = Vec<(Subscriber, PersistentSignal)>;

impl PersistentWatches {
    /// Adds a subscriber.
    pub(super) fn register(&mut self, path: &str) -> (u64, UnboundedReceiver<PersistentSignal>) {
        self.next_id += 1;
        let (sender, receiver) = unbounded_channel();
        self.subscribers.entry(path.to_owned()).or_default().insert(self.next_id, sender);
        self.orphans.remove(path);
        (self.next_id, receiver)
    }

    /// Removes a subscriber. Returns true if it was the last one of the path.
    pub(super) fn unregister(&mut self, id: u64, path: &str) -> bool {
        let Some(subscribers) = self.subscribers.get_mut(path) else { return false };
        subscribers.remove(&id);
        if !subscribers.is_empty() {
            return false;
        }
        self.subscribers.remove(path);
        true
    }

    /// Returns the watches without a subscriber for which `is_needed` returns false, each only once.
    pub(super) fn forsaken(&mut self, is_needed: impl Fn(&str) -> bool) -> Vec<String> {
        let (needed, forsaken) = mem::take(&mut self.orphans).into_iter().partition(|path| is_needed(path));
        self.orphans = needed;
        HashSet::into_iter(forsaken).collect()
    }

    /// Returns true if the server has a persistent watch on exactly this path, or will have one.
    pub(super) fn concerns(&self, path: &str) -> bool {
        self.at_server.contains(path) || self.subscribers.contains_key(path)
    }

    pub(super) fn link_lost(&mut self) {
        self.at_server.clear();
        self.orphans.clear();
    }

    /// Delivers an event to the subscribers at and above its path.
    pub(super) fn fire(&self, event: &WatchEvent, fires: &mut PersistentFires) {
        if self.at_server.is_empty() || event.kind == EventKind::ChildrenChanged {
            return;
        }
        let path: Arc<str> = Arc::from(event.path.as_str());
        let mut above = Some(event.path.as_str());
        while let Some(watched) = above {
            let subscribers = self.subscribers.get(watched).into_iter().flat_map(BTreeMap::values);
            let signal = || PersistentSignal::Event(event.kind, Arc::clone(&path));
            fires.extend(subscribers.map(|subscriber| (subscriber.clone(), signal())));
            above = parent(watched);
        }
    }

    /// Ends all subscriptions, because the server of the link does not support persistent watches.
    pub(super) fn withdraw(&mut self, fires: &mut PersistentFires) {
        self.link_lost();
        self.end(&PersistentSignal::Withdrawn, fires);
    }

    /// Ends the subscriptions of one path, whose watch remains for one-shot watches.
    pub(super) fn withdraw_at(&mut self, path: &str, fires: &mut PersistentFires) {
        let subscribers = self.subscribers.remove(path).unwrap_or_default();
        fires.extend(subscribers.into_values().map(|subscriber| (subscriber, PersistentSignal::Withdrawn)));
        self.orphans.insert(path.to_owned());
    }

    /// Ends all subscriptions with `signal`.
    pub(super) fn end(&mut self, signal: &PersistentSignal, fires: &mut PersistentFires) {
        let subscribers = mem::take(&mut self.subscribers).into_values().flat_map(BTreeMap::into_values);
        fires.extend(subscribers.map(|subscriber| (subscriber, signal.clone())));
    }

    /// Returns the paths to restore on a new link, in lists for requests of up to `request_limit` bytes.
    pub(super) fn restore(&self, request_limit: usize) -> Vec<Vec<String>> {
        split(self.subscribers.keys().cloned(), String::len, request_limit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::watch::CHUNK;

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

    fn notified(watches: &PersistentWatches, kind: EventKind, path: &str) -> usize {
        let mut fires = PersistentFires::default();
        watches.fire(&WatchEvent { kind, path: path.to_owned() }, &mut fires);
        fires.len()
    }

    #[test]
    fn an_event_is_reported_at_its_node_and_at_all_nodes_above() {
        let mut watches = PersistentWatches::default();
        let _all = ["/", "/a", "/a/b", "/a/bc"].map(|path| {
            watches.at_server.insert(path.to_owned());
            watches.register(path)
        });
        assert_eq!(notified(&watches, EventKind::DataChanged, "/a/b/c"), 3);
        assert_eq!(notified(&watches, EventKind::Created, "/a/b"), 3);
        assert_eq!(notified(&watches, EventKind::Deleted, "/x"), 1);
        assert_eq!(notified(&watches, EventKind::ChildrenChanged, "/a"), 0);
    }

    #[test]
    fn the_last_subscriber_of_a_path_and_no_other_removes_its_watch() {
        let mut watches = PersistentWatches::default();
        let ((first, _a), (second, _b)) = (watches.register("/a"), watches.register("/a"));
        assert!(!watches.unregister(first, "/a"));
        assert!(watches.unregister(second, "/a"));
        assert!(!watches.unregister(second, "/a"), "the subscriber was already removed");
    }

    #[test]
    fn watches_are_set_again_in_requests_that_servers_take() {
        let mut watches = PersistentWatches::default();
        let _all: Vec<_> = (0..100).map(|n| watches.register(&format!("/{n:0>95}"))).collect();
        let lists = watches.restore(1_064);
        assert_eq!(lists.iter().map(Vec::len).sum::<usize>(), 100);
        assert!(lists.iter().all(|list| list.len() == 10), "each path takes 100 bytes");
        assert_eq!(watches.restore(10).len(), 100, "each list has at least one path");
    }
}
