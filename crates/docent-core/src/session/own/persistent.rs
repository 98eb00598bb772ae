use crate::session::{PersistentSignal, SessionEnd};
use docent_proto::{EventKind, WatchEvent, parent};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

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
    subscribers: HashMap<String, Subscribers>,
    /// Paths with a persistent watch at the server of the link, according to the requests written.
    at_server: HashSet<String>,
    /// Paths of watches without a subscriber, which serve one-shot watches.
    orphans: HashSet<String>,
}

type Subscriber = UnboundedSender<PersistentSignal>;
type Subscribers = BTreeMap<u64, Subscriber>;

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

    /// Records that the watch on a path, which has no subscriber, is still needed by one-shot watches.
    pub(super) fn orphan(&mut self, path: &str) {
        self.orphans.insert(path.to_owned());
    }

    /// Returns the watches without a subscriber for which `is_needed` returns false, each only once.
    pub(super) fn forsaken(&mut self, is_needed: impl Fn(&str) -> bool) -> Vec<String> {
        let (needed, forsaken) =
            std::mem::take(&mut self.orphans).into_iter().partition(|path| is_needed(path));
        self.orphans = needed;
        HashSet::into_iter(forsaken).collect()
    }

    /// Returns true if the server has a persistent watch.
    pub(super) fn any(&self) -> bool {
        !self.at_server.is_empty()
    }

    pub(super) fn has_orphans(&self) -> bool {
        !self.orphans.is_empty()
    }

    /// Records that a request was written which sets a watch on the path.
    pub(super) fn set(&mut self, path: &str) {
        self.at_server.insert(path.to_owned());
    }

    /// Records that a request was written which removes all watches of the path.
    pub(super) fn unset(&mut self, path: &str) {
        self.at_server.remove(path);
    }

    /// Returns true if the server has a persistent watch on exactly this path.
    pub(super) fn is_set(&self, path: &str) -> bool {
        self.at_server.contains(path)
    }

    /// Returns true if the server has a persistent watch on exactly this path, or will have one.
    pub(super) fn concerns(&self, path: &str) -> bool {
        self.is_set(path) || self.subscribers.contains_key(path)
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
        self.end_with(&PersistentSignal::Withdrawn, fires);
    }

    /// Ends the subscriptions of one path, whose watch remains for one-shot watches.
    pub(super) fn withdraw_at(&mut self, path: &str, fires: &mut PersistentFires) {
        let subscribers = self.subscribers.remove(path).unwrap_or_default();
        fires.extend(subscribers.into_values().map(|subscriber| (subscriber, PersistentSignal::Withdrawn)));
        self.orphan(path);
    }

    /// Ends all subscriptions with the session.
    pub(super) fn end(&mut self, end: SessionEnd, fires: &mut PersistentFires) {
        self.end_with(&PersistentSignal::Ended(end), fires);
    }

    fn end_with(&mut self, signal: &PersistentSignal, fires: &mut PersistentFires) {
        let subscribers = std::mem::take(&mut self.subscribers).into_values().flat_map(BTreeMap::into_values);
        fires.extend(subscribers.map(|subscriber| (subscriber, signal.clone())));
    }

    /// Returns the paths to restore on a new link, in lists of at most `limit` bytes.
    pub(super) fn restore(&self, limit: usize) -> Vec<Vec<String>> {
        const LENGTH: usize = 4;
        let (mut lists, mut size) = (Vec::<Vec<String>>::new(), 0);
        for path in self.subscribers.keys() {
            size += LENGTH + path.len();
            match lists.last_mut().filter(|_| size <= limit) {
                Some(list) => list.push(path.clone()),
                None => {
                    size = LENGTH + path.len();
                    lists.push(vec![path.clone()]);
                }
            }
        }
        lists
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn notified(watches: &PersistentWatches, kind: EventKind, path: &str) -> usize {
        let mut fires = PersistentFires::default();
        watches.fire(&WatchEvent { kind, path: path.to_owned() }, &mut fires);
        fires.len()
    }

    #[test]
    fn an_event_is_reported_at_its_node_and_at_all_nodes_above() {
        let mut watches = PersistentWatches::default();
        let _all = ["/", "/a", "/a/b", "/a/bc"].map(|path| {
            watches.set(path);
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
        let lists = watches.restore(1_000);
        assert_eq!(lists.iter().map(Vec::len).sum::<usize>(), 100);
        assert!(lists.iter().all(|list| list.len() == 10), "each path takes 100 bytes");
        assert_eq!(watches.restore(10).len(), 100, "each list has at least one path");
    }
}
