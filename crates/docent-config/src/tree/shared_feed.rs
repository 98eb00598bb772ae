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

/// Follows a folder for all its subscriptions.
pub(crate) struct SharedTreeFeed<T> {
    pub(super) cache: ChildrenCache,
    pub(super) lag: ViewLag,
    /// Reads take no lock.
    pub(super) current: Arc<ArcSwap<TreeSnapshot<T>>>,
    /// The latest values of all keys, or `None` before everything was read once. The task owns its sender and
    /// drops it when it ends.
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
            client: versioned.client().label().to_owned(),
            path: versioned.path().to_owned(),
            path_at_servers: versioned.path_at_servers(),
            events: cache.changes(),
            counts: Counts::new(versioned.client(), None),
            connection: versioned.client().state(),
            format: format.clone(),
            filters: BTreeMap::new(),
            snapshot: TreeSnapshot::default(),
            listed: None,
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

/// Maximum number of events processed before other tasks get their turn.
const AT_ONCE: usize = 1_024;

struct TreeFeedTask<T> {
    client: String,
    path: String,
    path_at_servers: String,
    events: ChildrenEvents,
    counts: Counts,
    connection: StateWatcher,
    format: ValueFormat<T>,
    filters: BTreeMap<Arc<str>, NewestFilter<T>>,
    snapshot: TreeSnapshot<T>,
    /// Keys reported since the cache started a complete listing, or `None` outside of one.
    listed: Option<BTreeSet<Arc<str>>>,
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
            // Known values stay, and the cache reports the error to subscriptions.
            let Ok(event) = event else { continue };
            let (events, is_all) = self.batch(event);
            let changes = |event: &_| {
                use ChildrenEvent::{Added, Delete, Updated};
                matches!(event, Added(..) | Updated(..) | Delete(_))
            };
            if !events.iter().any(changes) {
                // There is nothing to decode and no value to drop.
                hooks.run_inline(&mut self, |task| task.apply_events(events, is_all));
                continue;
            }
            match hooks.run(self, move |task| task.apply_events(events, is_all)).await {
                Some(task) => self = task,
                None => return,
            }
        }
    }

    /// Returns `first` and the events that are already available, and whether these are all.
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

    /// Applies events. The map is copied once for all of them.
    fn apply_events(&mut self, events: Vec<ChildrenEvent>, is_all: bool) {
        let path = self.path.clone();
        for event in events {
            // Values may run user code when dropped. A panic there must not affect other events.
            let _ = call_hook("drop of a value", &path, || self.take(event));
        }
        if is_all {
            // A complete listing is reported without a pause in between.
            self.complete();
        }
        if self.loaded {
            let snapshot = Arc::new(self.snapshot.clone());
            // Older values are dropped after subscribers were notified of the new ones.
            let before = self.current.swap(Arc::clone(&snapshot));
            let replaced = self.state.send_replace(Some(snapshot));
            drop((before, replaced));
        }
    }

    fn take(&mut self, event: ChildrenEvent) {
        match event {
            ChildrenEvent::Init => self.listed = Some(BTreeSet::new()),
            ChildrenEvent::Added(key, node) | ChildrenEvent::Updated(key, node) if &*key != FOLDER => {
                self.apply(key, &node);
            }
            ChildrenEvent::Delete(key) => self.delete(&key),
            ChildrenEvent::Unreadable(key, error) if &*key != FOLDER => {
                self.mark_listed(&key);
                self.refuse(key, Rejection::unreadable(&error));
            }
            ChildrenEvent::Ready => self.complete(),
            // Known values stay, and the cache reports that they are stale.
            _ => {}
        }
    }

    fn apply(&mut self, key: Arc<str>, node: &Node) {
        self.mark_listed(&key);
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
        // Event: The value of one key in a configuration folder could not be read, decoded or validated. The
        // last valid value stays in use.
        // Action: Correct the published value, or roll it back.
        tracing::warn!(target: "docent::config", client = %self.client, path = %self.path_at_servers, key = &*key, %refusal, "rejected a configuration value; keeping the last valid one");
        self.snapshot.refused.insert(key, refusal);
    }

    fn delete(&mut self, key: &str) {
        self.filters.remove(key);
        self.snapshot.values.remove(key);
        self.snapshot.refused.remove(key);
    }

    fn mark_listed(&mut self, key: &Arc<str>) {
        if let Some(listed) = &mut self.listed {
            listed.insert(Arc::clone(key));
        }
    }

    /// Ends a complete listing: keys that it did not contain were deleted.
    fn complete(&mut self) {
        let Some(listed) = self.listed.take() else { return };
        self.loaded = true;
        let known = self.snapshot.values.keys().chain(self.snapshot.refused.keys());
        let deleted: Vec<_> = known.filter(|key| !listed.contains(*key)).cloned().collect();
        for key in deleted {
            self.delete(&key);
        }
    }
}
