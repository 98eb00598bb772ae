use super::TreeSnapshot;
use crate::history::FOLDER;
use crate::subscription::{Judgement, NewestFilter};
use crate::value::ValueFormat;
use crate::{Rejection, Revision, SubscribeError, telemetry};
use arc_swap::ArcSwap;
use docent_core::recipe::{VersionedNode, spawn};
use docent_core::{ChildrenCache, ChildrenEvent, ChildrenEvents, Error, Node, StateWatcher};
use futures_util::{FutureExt, StreamExt};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use tokio::sync::watch;
use tokio_util::sync::{CancellationToken, DropGuard};

/// Follows a folder for all who subscribed to it.
pub(crate) struct SharedTreeFeed<T> {
    pub(super) cache: ChildrenCache,
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
        let abandoned = CancellationToken::new();
        let task = TreeFeedTask {
            path: versioned.path().to_owned(),
            events: cache.subscribe(),
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
        spawn(versioned.client(), task.run());
        Ok(Self { cache, current, state, _task: abandoned.drop_guard() })
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
    async fn run(mut self) {
        loop {
            let event = tokio::select! {
                biased;
                () = self.abandoned.cancelled() => return,
                event = self.events.next() => event,
            };
            let Some(event) = event else { return };
            self.take(event);
            // The map is copied once for all that is there.
            for _ in 0..AT_ONCE {
                match self.events.next().now_or_never() {
                    Some(Some(event)) => self.take(event),
                    _ => {
                        // Everything that is told anew is told without a pause in between.
                        self.complete();
                        break;
                    }
                }
            }
            if self.loaded {
                let snapshot = Arc::new(self.snapshot.clone());
                self.current.store(Arc::clone(&snapshot));
                self.state.send_replace(Some(snapshot));
            }
        }
    }

    fn take(&mut self, event: Result<ChildrenEvent, Error>) {
        // Known values stay, and the cache tells subscriptions of the error.
        let Ok(event) = event else { return };
        match event {
            ChildrenEvent::Init => self.whole = Some(BTreeSet::new()),
            ChildrenEvent::Apply(key, node) if &*key != FOLDER => self.apply(key, &node),
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
        let filter = filter.or_insert_with(|| NewestFilter::new(self.format.clone(), rollbacks));
        match filter.judge(Some((Revision::from(&node.stat), &node.data)), rollbacks) {
            Judgement::Good(snapshot) => {
                telemetry::applied();
                self.snapshot.refused.remove(&key);
                self.snapshot.values.insert(key, snapshot);
            }
            Judgement::Refused(refusal) => self.refuse(key, refusal),
            Judgement::Missing | Judgement::Old => {}
        }
    }

    fn refuse(&mut self, key: Arc<str>, refusal: Rejection) {
        telemetry::refused();
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
