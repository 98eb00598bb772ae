use super::TreeSnapshot;
use crate::history::FOLDER;
use crate::subscription::{Judgement, NewestFilter};
use crate::telemetry::Counts;
use crate::value::ValueFormat;
use crate::{Rejection, Revision, SubscribeError};
use arc_swap::ArcSwap;
use docent_core::recipe::{Hooks, VersionedNode, ViewLag, call_hook, spawn};
use docent_core::{ChildrenCache, ChildrenEvent, ChildrenEvents, Error, Node, StateWatcher};
use futures_util::{FutureExt, StreamExt};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use tokio::sync::watch;
use tokio_util::sync::{CancellationToken, DropGuard};

/// Follows a folder for all who subscribed to it.
pub(crate) struct SharedTreeFeed<T> {
    pub(super) cache: ChildrenCache,
    pub(super) lag: ViewLag,
    /// Read without a lock that anybody could hold.
    pub(super) current: Arc<ArcSwap<TreeSnapshot<T>>>,
    /// The newest values of all keys; `None` before everything was read once. Its sender belongs to the task,
    /// and goes with it.
    pub(super) state: watch::Receiver<Option<Arc<TreeSnapshot<T>>>>,
    _task: DropGuard,
}

impl<T: Send + Sync + 'static> SharedTreeFeed<T> {
    pub(crate) fn start(versioned: &VersionedNode, format: &ValueFormat<T>) -> Result<Self, Error> {
        let cache = ChildrenCache::new(versioned.client(), versioned.path())?;
        let current = Arc::new(ArcSwap::default());
        let (sender, state) = watch::channel(None);
        let (abandoned, hooks) = (CancellationToken::new(), Hooks::new(versioned.client(), versioned.path()));
        let lag = hooks.lag();
        let task = TreeFeedTask {
            path: versioned.path().to_owned(),
            events: cache.changes(),
            counts: Counts::new(versioned.client(), None),
            connection: versioned.client().state(),
            format: format.clone(),
            filters: BTreeMap::new(),
            snapshot: TreeSnapshot::default(),
            whole: None,
            loaded: false,
            current: Arc::clone(&current),
            state: sender,
            abandoned: abandoned.clone(),
        };
        spawn(versioned.client(), task.run(hooks));
        Ok(Self { cache, lag, current, state, _task: abandoned.drop_guard() })
    }

    pub(crate) async fn ready(&self) -> Result<(), SubscribeError> {
        self.cache.ready().await?;
        match self.state.clone().wait_for(Option::is_some).await {
            Ok(_) => Ok(()),
            Err(_) => Err(Error::closed("subscribe", self.cache.path()).into()),
        }
    }
}

/// Events that are taken before others get their turn.
const AT_ONCE: usize = 1_024;

struct TreeFeedTask<T> {
    path: String,
    events: ChildrenEvents,
    counts: Counts,
    connection: StateWatcher,
    format: ValueFormat<T>,
    filters: BTreeMap<Arc<str>, NewestFilter<T>>,
    snapshot: TreeSnapshot<T>,
    /// The keys told since everything is told anew.
    whole: Option<BTreeSet<Arc<str>>>,
    loaded: bool,
    current: Arc<ArcSwap<TreeSnapshot<T>>>,
    state: watch::Sender<Option<Arc<TreeSnapshot<T>>>>,
    abandoned: CancellationToken,
}

impl<T: Send + Sync + 'static> TreeFeedTask<T> {
    async fn run(mut self, hooks: Hooks) {
        loop {
            let event = tokio::select! {
                biased;
                () = self.abandoned.cancelled() => return,
                event = self.events.next() => event,
            };
            let Some(event) = event else { return };
            // Known values stay, and the cache tells subscriptions of the error.
            let Ok(event) = event else { continue };
            let (events, is_all) = self.batch(event);
            let changes = |event: &_| {
                use ChildrenEvent::{Added, Delete, Updated};
                matches!(event, Added(..) | Updated(..) | Delete(_))
            };
            if !events.iter().any(changes) {
                // Nothing to decode, and no value to drop.
                hooks.run_here(&mut self, |task| task.hear(events, is_all));
                continue;
            }
            match hooks.run(self, move |task| task.hear(events, is_all)).await {
                Some(task) => self = task,
                None => return,
            }
        }
    }

    /// The events that are there, from `first` on, and whether these are all.
    fn batch(&mut self, first: ChildrenEvent) -> (Vec<ChildrenEvent>, bool) {
        let mut events = vec![first];
        while events.len() <= AT_ONCE {
            match self.events.next().now_or_never() {
                Some(Some(Ok(event))) => events.push(event),
                Some(Some(Err(_))) => {}
                _ => return (events, true),
            }
        }
        (events, false)
    }

    /// The map is copied once for all that is there.
    fn hear(&mut self, events: Vec<ChildrenEvent>, is_all: bool) {
        let path = self.path.clone();
        for event in events {
            // Values have drops of their own, and a panic there takes no other event with it.
            let _ = call_hook("drop of a value", &path, || self.take(event));
        }
        if is_all {
            // Everything that is told anew is told without a pause in between.
            self.complete();
        }
        if self.loaded {
            let snapshot = Arc::new(self.snapshot.clone());
            // Older values are dropped once the new ones are told.
            let before = self.current.swap(Arc::clone(&snapshot));
            let told = self.state.send_replace(Some(snapshot));
            drop((before, told));
        }
    }

    fn take(&mut self, event: ChildrenEvent) {
        match event {
            ChildrenEvent::Init => self.whole = Some(BTreeSet::new()),
            ChildrenEvent::Added(key, node) | ChildrenEvent::Updated(key, node) if &*key != FOLDER => {
                self.apply(key, &node);
            }
            ChildrenEvent::Delete(key) => self.delete(&key),
            ChildrenEvent::Unreadable(key, error) if &*key != FOLDER => {
                self.tell(&key);
                self.refuse(key, Rejection::unreadable(&error));
            }
            ChildrenEvent::Ready => self.complete(),
            // Known values stay, and the cache says that they are stale.
            _ => {}
        }
    }

    fn apply(&mut self, key: Arc<str>, node: &Node) {
        self.tell(&key);
        let rollbacks = self.connection.current().rollbacks;
        let filter = self.filters.entry(Arc::clone(&key));
        let format = || self.format.at(&format!("{}/{key}", self.path));
        let filter = filter.or_insert_with(|| NewestFilter::new(format(), rollbacks));
        match filter.judge(Some((Revision::from(&node.stat), &node.data)), rollbacks) {
            Judgement::Good(snapshot) => {
                self.counts.applied();
                self.snapshot.refused.remove(&key);
                self.snapshot.values.insert(key, snapshot);
            }
            Judgement::Refused(refusal) => self.refuse(key, refusal),
            Judgement::Missing | Judgement::Old => {}
        }
    }

    fn refuse(&mut self, key: Arc<str>, refusal: Rejection) {
        self.counts.refused();
        tracing::warn!(path = self.path, key = &*key, %refusal, "a value is refused, the last good one stays");
        self.snapshot.refused.insert(key, refusal);
    }

    fn delete(&mut self, key: &str) {
        self.filters.remove(key);
        self.snapshot.values.remove(key);
        self.snapshot.refused.remove(key);
    }

    fn tell(&mut self, key: &Arc<str>) {
        if let Some(whole) = &mut self.whole {
            whole.insert(Arc::clone(key));
        }
    }

    /// Keys that were not told again are gone.
    fn complete(&mut self) {
        let Some(whole) = self.whole.take() else { return };
        self.loaded = true;
        let known = self.snapshot.values.keys().chain(self.snapshot.refused.keys());
        let gone: Vec<_> = known.filter(|key| !whole.contains(*key)).cloned().collect();
        for key in gone {
            self.delete(&key);
        }
    }
}
