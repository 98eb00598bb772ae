use super::children::{ChildrenEvent, EventResult, Replay};
use super::snapshot::ChildrenSnapshot;
use super::status::Status;
use super::subscriber::Subscriber;
use crate::error::Error;
use crate::node::Stat;
use crate::time::Clock;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use tokio::sync::watch;

/// Minimum number of events kept for a slow subscriber; with more children, their number.
const BACKLOG: usize = 1024;

/// Content of a cache, written by its task and read by handles and subscribers. The task never waits for
/// them.
pub(super) struct ChildrenStore {
    clock: Arc<dyn Clock>,
    content: Mutex<Content>,
    /// Changed only while the content is locked, so that the two agree.
    status: watch::Sender<Status>,
}

#[derive(Default)]
struct Content {
    snapshot: Arc<ChildrenSnapshot>,
    next_id: u64,
    subscribers: HashMap<u64, Subscriber>,
}

impl ChildrenStore {
    pub(super) fn new(clock: Arc<dyn Clock>) -> Self {
        let status = watch::Sender::new(Status::new(&*clock));
        Self { clock, content: Mutex::default(), status }
    }

    fn lock(&self) -> MutexGuard<'_, Content> {
        self.content.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn status(&self) -> watch::Receiver<Status> {
        self.status.subscribe()
    }

    pub(super) fn current(&self) -> Arc<ChildrenSnapshot> {
        Arc::clone(&self.lock().snapshot)
    }

    pub(super) fn subscribe(&self) -> u64 {
        let mut content = self.lock();
        content.next_id += 1;
        let id = content.next_id;
        let status = self.status.borrow();
        let mut subscriber = Subscriber::new(status.last_error.clone().map(Err));
        if status.loaded {
            subscriber.begin();
        }
        content.subscribers.insert(id, subscriber);
        id
    }

    pub(super) fn unsubscribe(&self, id: u64) {
        let subscriber = self.lock().subscribers.remove(&id);
        drop(subscriber);
    }

    /// Takes the next event of a subscriber.
    pub(super) fn poll_next(&self, id: u64, cx: &Context<'_>) -> Poll<Option<EventResult>> {
        let mut content = self.lock();
        let Content { snapshot, subscribers, .. } = &mut *content;
        let Some(subscriber) = subscribers.get_mut(&id) else { return Poll::Ready(None) };
        let status = self.status.borrow();
        let replay = || {
            let end = match (&status.last_error, status.stale_since) {
                (Some(error), _) => Some(Err(error.clone())),
                (None, Some(_)) => None,
                (None, None) => Some(Ok(ChildrenEvent::Ready)),
            };
            Replay::new(Arc::clone(snapshot), end)
        };
        subscriber.take(replay, cx.waker(), status.closed)
    }

    /// Applies `events` to the content, and sends them to the subscribers. An added child that was already
    /// known is reported as updated.
    pub(super) fn publish(&self, folder: Option<Stat>, events: &[ChildrenEvent]) {
        let mut content = self.lock();
        if folder == content.snapshot.folder && events.is_empty() {
            return;
        }
        // Copies the changed parts of the map, and only if the current snapshot is held elsewhere.
        let snapshot = Arc::make_mut(&mut content.snapshot);
        snapshot.folder = folder;
        let events: Vec<_> = events.iter().map(|event| Ok(snapshot.enter(event))).collect();
        // Before the first load, subscribers get nothing.
        if self.status.borrow().loaded {
            notify_subscribers(content, &events);
        }
    }

    /// Marks the content as up to date and complete.
    pub(super) fn caught_up(&self) {
        let content = self.lock();
        let first = !self.status.borrow().loaded;
        self.status.send_modify(Status::caught_up);
        if first {
            wake(content, Subscriber::begin);
        } else {
            notify_subscribers(content, &[Ok(ChildrenEvent::Ready)]);
        }
    }

    /// Marks the content as possibly out of date from now on.
    pub(super) fn stale(&self) {
        let content = self.lock();
        if self.status.borrow().stale_since.is_none() {
            let now = self.clock.now();
            self.status.send_modify(|status| status.stale_since = Some(now));
            notify_subscribers(content, &[Ok(ChildrenEvent::Gap)]);
        }
    }

    /// Reports that the children cannot be listed.
    pub(super) fn failed(&self, error: &Error) {
        let content = self.lock();
        let now = self.clock.now();
        let known = self.status.borrow().last_error.as_ref().map(Error::kind) == Some(error.kind());
        self.status.send_modify(|status| status.failed(error.clone(), now));
        if !known {
            notify_subscribers(content, &[Err(error.clone())]);
        }
    }

    /// Reports that no more events will come.
    pub(super) fn close(&self) {
        let content = self.lock();
        self.status.send_modify(|status| status.close(self.clock.now()));
        wake(content, Subscriber::wake);
    }
}

/// Queues events for all subscribers, and wakes them.
fn notify_subscribers(content: MutexGuard<'_, Content>, events: &[EventResult]) {
    let limit = content.snapshot.len().max(BACKLOG);
    wake(content, |subscriber| subscriber.push(events, limit));
}

/// Changes all subscribers, and wakes them after the content is unlocked.
fn wake(mut content: MutexGuard<'_, Content>, change: impl FnMut(&mut Subscriber) -> Option<Waker>) {
    let wakers: Vec<_> = content.subscribers.values_mut().filter_map(change).collect();
    drop(content);
    wakers.into_iter().for_each(Waker::wake);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;
    use crate::node::Node;
    use crate::time::TokioClock;
    use bytes::Bytes;
    use futures_util::task::noop_waker;

    fn node(mzxid: i64) -> Arc<Node> {
        let stat = docent_proto::Stat { mzxid, ..docent_proto::Stat::default() };
        Arc::new(Node { data: Bytes::new(), stat: stat.into() })
    }

    fn apply(name: &str, mzxid: i64) -> ChildrenEvent {
        ChildrenEvent::Added(Arc::from(name), node(mzxid))
    }

    fn text(item: EventResult) -> String {
        item.map_or_else(|error| error.to_string(), |event| format!("{event:?}"))
    }

    /// All events that subscriber `id` can take now, as text.
    fn take_all(store: &ChildrenStore, id: u64) -> Vec<String> {
        let waker = noop_waker();
        let mut events = Vec::new();
        loop {
            match store.poll_next(id, &Context::from_waker(&waker)) {
                Poll::Ready(Some(event)) => events.push(text(event)),
                Poll::Ready(None) => {
                    events.push("End".to_owned());
                    return events;
                }
                Poll::Pending => return events,
            }
        }
    }

    fn store() -> ChildrenStore {
        ChildrenStore::new(Arc::new(TokioClock::new()))
    }

    #[tokio::test]
    async fn a_subscriber_gets_the_whole_content_and_then_the_changes() {
        let store = store();
        let early = store.subscribe();
        store.publish(None, &[apply("b", 2), apply("a", 1)]);
        assert!(take_all(&store, early).is_empty(), "no events before the first load");
        store.caught_up();
        let late = store.subscribe();
        let everything = ["Init", "Added(\"a\", mzxid 1)", "Added(\"b\", mzxid 2)", "Ready"];
        assert_eq!(take_all(&store, early), everything);
        assert_eq!(take_all(&store, late), everything);
        store.stale();
        store.publish(None, &[apply("a", 3), ChildrenEvent::Delete("b".into())]);
        store.caught_up();
        let changes = ["Gap", "Updated(\"a\", mzxid 3)", "Delete(\"b\")", "Ready"];
        assert_eq!(take_all(&store, early), changes);
        store.unsubscribe(late);
        store.close();
        assert_eq!(take_all(&store, early), ["End"]);
    }

    #[tokio::test]
    async fn a_node_that_took_the_place_of_another_is_added_and_not_updated() {
        let store = store();
        store.caught_up();
        let subscriber = store.subscribe();
        take_all(&store, subscriber);
        let other = docent_proto::Stat { czxid: 7, mzxid: 7, ..docent_proto::Stat::default() };
        let other =
            ChildrenEvent::Added("a".into(), Arc::new(Node { data: Bytes::new(), stat: other.into() }));
        store.publish(
            None,
            &[apply("a", 1), apply("a", 2), other, ChildrenEvent::Delete("a".into()), apply("a", 9)],
        );
        let expected = [
            "Added(\"a\", mzxid 1)",
            "Updated(\"a\", mzxid 2)",
            "Added(\"a\", mzxid 7)",
            "Delete(\"a\")",
            "Added(\"a\", mzxid 9)",
        ];
        assert_eq!(take_all(&store, subscriber), expected);
    }

    #[tokio::test]
    async fn a_slow_subscriber_gets_a_gap_and_the_whole_content_again() {
        let store = store();
        store.caught_up();
        let (slow, quick) = (store.subscribe(), store.subscribe());
        take_all(&store, slow);
        take_all(&store, quick);
        for mzxid in 0..10 * BACKLOG as i64 {
            store.publish(None, &[apply("a", mzxid)]);
            assert_eq!(take_all(&store, quick).len(), 1);
        }
        let last = format!("Added(\"a\", mzxid {})", 10 * BACKLOG - 1);
        assert_eq!(take_all(&store, slow), ["Gap", "Init", &last, "Ready"]);
        store.publish(None, &[ChildrenEvent::Delete("a".into())]);
        assert_eq!(take_all(&store, slow), ["Delete(\"a\")"]);
    }

    #[tokio::test]
    async fn a_subscriber_of_a_stale_cache_gets_no_ready_event() {
        let store = store();
        store.publish(None, &[apply("a", 1)]);
        store.caught_up();
        store.stale();
        let subscriber = store.subscribe();
        assert_eq!(take_all(&store, subscriber), ["Init", "Added(\"a\", mzxid 1)"]);
        let refused = Error::new(ErrorKind::NoAuth, "watch");
        store.failed(&refused);
        store.failed(&refused);
        assert_eq!(take_all(&store, subscriber), ["watch: permission denied"], "once");
        store.caught_up();
        assert_eq!(take_all(&store, subscriber), ["Ready"]);
    }

    #[tokio::test]
    async fn a_snapshot_stays_as_it_is_and_costs_a_copy_only_while_it_is_held() {
        let store = store();
        store.publish(None, &[apply("a", 1)]);
        let held = store.current();
        store.publish(None, &[apply("a", 2), apply("b", 2)]);
        assert_eq!((held.len(), held.get("a").unwrap().stat.mzxid), (1, 1));
        drop(held);
        let before = Arc::as_ptr(&store.current());
        store.publish(None, &[apply("c", 3)]);
        assert_eq!(Arc::as_ptr(&store.current()), before, "changed in place");
        assert_eq!(store.current().iter().map(|(name, _)| &**name).collect::<String>(), "abc");
    }
}
