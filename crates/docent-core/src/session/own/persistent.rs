use crate::session::{PersistentNews, SessionEnd};
use docent_proto::{EventKind, WatchEvent, parent};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

/// The persistent recursive watches of a session: one at the server for a path, many subscribers here.
///
/// Servers before 3.9 keep, in each of their tables, one mode for all watches of a link on a path: a watch on
/// data that comes true once, set after a persistent one, takes its place, and a removal takes away both. So
/// where a persistent watch is at the server no other one on data is set or removed on that path: its events
/// serve the others, too. Sets of children are told by watches of their own, in the other table: a persistent
/// one tells of a child by that child's permissions, which this client may not have.
#[derive(Debug, Default)]
pub(super) struct PersistentWatches {
    next_id: u64,
    subscribers: HashMap<String, Subscribers>,
    /// Paths with such a watch at the server of the link, as far as requests were written.
    at_server: HashSet<String>,
    /// Paths of those without a subscriber, which serve others.
    orphans: HashSet<String>,
}

type Subscriber = UnboundedSender<PersistentNews>;
type Subscribers = BTreeMap<u64, Subscriber>;

/// News to be delivered once the machine is no longer locked.
pub(super) type PersistentFires = Vec<(Subscriber, PersistentNews)>;

impl PersistentWatches {
    /// Adds a subscriber.
    pub(super) fn register(&mut self, path: &str) -> (u64, UnboundedReceiver<PersistentNews>) {
        self.next_id += 1;
        let (news, receiver) = unbounded_channel();
        self.subscribers.entry(path.to_owned()).or_default().insert(self.next_id, news);
        self.orphans.remove(path);
        (self.next_id, receiver)
    }

    /// Removes a subscriber. True when it was the last one of the path.
    pub(super) fn unregister(&mut self, id: u64, path: &str) -> bool {
        let Some(subscribers) = self.subscribers.get_mut(path) else { return false };
        subscribers.remove(&id);
        if !subscribers.is_empty() {
            return false;
        }
        self.subscribers.remove(path);
        true
    }

    /// Takes note that the watch on a path, which has no subscriber, is still needed by others.
    pub(super) fn orphan(&mut self, path: &str) {
        self.orphans.insert(path.to_owned());
    }

    /// The watches without a subscriber that `is_needed` says no of; they are not named again.
    pub(super) fn forsaken(&mut self, is_needed: impl Fn(&str) -> bool) -> Vec<String> {
        let (needed, forsaken) =
            std::mem::take(&mut self.orphans).into_iter().partition(|path| is_needed(path));
        self.orphans = needed;
        HashSet::into_iter(forsaken).collect()
    }

    /// True when the server has one.
    pub(super) fn any(&self) -> bool {
        !self.at_server.is_empty()
    }

    pub(super) fn has_orphans(&self) -> bool {
        !self.orphans.is_empty()
    }

    /// Takes note that a request was written which sets a watch on the path.
    pub(super) fn set(&mut self, path: &str) {
        self.at_server.insert(path.to_owned());
    }

    /// Takes note that a request was written which removes all watches of the path.
    pub(super) fn unset(&mut self, path: &str) {
        self.at_server.remove(path);
    }

    /// True when the server has such a watch on this very path.
    pub(super) fn is_set(&self, path: &str) -> bool {
        self.at_server.contains(path)
    }

    /// True when the server has one on this very path, or will have.
    pub(super) fn concerns(&self, path: &str) -> bool {
        self.is_set(path) || self.subscribers.contains_key(path)
    }

    pub(super) fn link_lost(&mut self) {
        self.at_server.clear();
        self.orphans.clear();
    }

    /// Tells of an event.
    pub(super) fn fire(&self, event: &WatchEvent, fires: &mut PersistentFires) {
        if self.at_server.is_empty() || event.kind == EventKind::ChildrenChanged {
            return;
        }
        let path: Arc<str> = Arc::from(event.path.as_str());
        let mut above = Some(event.path.as_str());
        while let Some(watched) = above {
            let subscribers = self.subscribers.get(watched).into_iter().flat_map(BTreeMap::values);
            let news = || PersistentNews::Event(event.kind, Arc::clone(&path));
            fires.extend(subscribers.map(|subscriber| (subscriber.clone(), news())));
            above = parent(watched);
        }
    }

    /// Ends all of them, because the server of the link does not have such watches.
    pub(super) fn withdraw(&mut self, fires: &mut PersistentFires) {
        self.link_lost();
        self.end_with(&PersistentNews::Withdrawn, fires);
    }

    /// Ends the subscriptions of one path, whose watch stays for others.
    pub(super) fn withdraw_at(&mut self, path: &str, fires: &mut PersistentFires) {
        let subscribers = self.subscribers.remove(path).unwrap_or_default();
        fires.extend(subscribers.into_values().map(|subscriber| (subscriber, PersistentNews::Withdrawn)));
        self.orphan(path);
    }

    /// Ends all of them with the session.
    pub(super) fn end(&mut self, end: SessionEnd, fires: &mut PersistentFires) {
        self.end_with(&PersistentNews::Ended(end), fires);
    }

    fn end_with(&mut self, news: &PersistentNews, fires: &mut PersistentFires) {
        let subscribers = std::mem::take(&mut self.subscribers).into_values().flat_map(BTreeMap::into_values);
        fires.extend(subscribers.map(|subscriber| (subscriber, news.clone())));
    }

    /// The paths to set again on a new link, in lists of at most `limit` bytes.
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

    fn told(watches: &PersistentWatches, kind: EventKind, path: &str) -> usize {
        let mut fires = PersistentFires::default();
        watches.fire(&WatchEvent { kind, path: path.to_owned() }, &mut fires);
        fires.len()
    }

    #[test]
    fn an_event_is_told_at_its_node_and_everywhere_above() {
        let mut watches = PersistentWatches::default();
        let _all = ["/", "/a", "/a/b", "/a/bc"].map(|path| {
            watches.set(path);
            watches.register(path)
        });
        assert_eq!(told(&watches, EventKind::DataChanged, "/a/b/c"), 3);
        assert_eq!(told(&watches, EventKind::Created, "/a/b"), 3);
        assert_eq!(told(&watches, EventKind::Deleted, "/x"), 1);
        assert_eq!(told(&watches, EventKind::ChildrenChanged, "/a"), 0);
    }

    #[test]
    fn the_last_subscriber_of_a_path_and_no_other_removes_its_watch() {
        let mut watches = PersistentWatches::default();
        let ((first, _a), (second, _b)) = (watches.register("/a"), watches.register("/a"));
        assert!(!watches.unregister(first, "/a"));
        assert!(watches.unregister(second, "/a"));
        assert!(!watches.unregister(second, "/a"), "it is gone already");
    }

    #[test]
    fn watches_are_set_again_in_requests_that_servers_take() {
        let mut watches = PersistentWatches::default();
        let _all: Vec<_> = (0..100).map(|n| watches.register(&format!("/{n:0>95}"))).collect();
        let lists = watches.restore(1_000);
        assert_eq!(lists.iter().map(Vec::len).sum::<usize>(), 100);
        assert!(lists.iter().all(|list| list.len() == 10), "100 bytes each");
        assert_eq!(watches.restore(10).len(), 100, "one at least");
    }
}
