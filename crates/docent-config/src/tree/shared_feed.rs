use super::TreeSnapshot;
use crate::history;
use crate::rollout;
use crate::subscription::{Judgement, NewestFilter};
use crate::telemetry::Counts;
use crate::value::ValueFormat;
use crate::{Rejection, Revision, SubscribeError};
use arc_swap::ArcSwap;
use docent_core::recipe::{Hooks, VersionedNode, ViewLag, call_hook, is_own_name, spawn};
use docent_core::{Error, Node, StateWatcher, TreeCache, TreeEvent, TreeEvents};
use futures_util::{FutureExt, StreamExt};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::Arc;
use tokio::sync::watch;
use tokio_util::sync::{CancellationToken, DropGuard};

/// Follows a folder at all depths for all its subscriptions.
pub(crate) struct SharedTreeFeed<T> {
    pub(crate) cache: TreeCache,
    pub(crate) lag: ViewLag,
    /// Reads take no lock.
    pub(super) current: Arc<ArcSwap<TreeSnapshot<T>>>,
    /// The latest values of all keys, or `None` before everything was read once. The task owns its sender and
    /// drops it when it ends.
    pub(crate) state: watch::Receiver<Option<Arc<TreeSnapshot<T>>>>,
    _task: DropGuard,
}

impl<T: Send + Sync + 'static> SharedTreeFeed<T> {
    pub(crate) fn start(versioned: &VersionedNode, format: &ValueFormat<T>) -> Result<Self, Error> {
        let folder = format!("{}/", versioned.path());
        let prefix = folder.clone();
        let is_of_tree = move |path: &str| path.strip_prefix(&prefix).is_none_or(is_key);
        let cache = TreeCache::builder(versioned.client(), versioned.path()).select(is_of_tree).build()?;
        let current = Arc::new(ArcSwap::default());
        let (sender, state) = watch::channel(None);
        let (abandoned, hooks) = (CancellationToken::new(), Hooks::new(versioned.client(), versioned.path()));
        let lag = hooks.lag();
        let task = TreeFeedTask {
            client: versioned.client().label().to_owned(),
            path: versioned.path().to_owned(),
            folder,
            path_at_servers: versioned.path_at_servers(),
            events: cache.changes(),
            counts: Counts::new(versioned.client(), None),
            connection: versioned.client().state(),
            format: format.clone(),
            filters: BTreeMap::new(),
            known: BTreeSet::new(),
            empty: BTreeMap::new(),
            unsettled: BTreeSet::new(),
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
    /// Path with a `/` at its end. The rest of a node's path is its key.
    folder: String,
    path_at_servers: String,
    events: TreeEvents,
    counts: Counts,
    connection: StateWatcher,
    format: ValueFormat<T>,
    filters: BTreeMap<Arc<str>, NewestFilter<T>>,
    /// Keys of all nodes, with and without a value.
    known: BTreeSet<Arc<str>>,
    /// Nodes without data. Each of them has a value only if no node is below it.
    empty: BTreeMap<Arc<str>, Arc<Node>>,
    /// Nodes without data of which it must be decided again whether they have a value.
    unsettled: BTreeSet<Arc<str>>,
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
                use TreeEvent::{Added, Delete, Updated};
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
    fn batch(&mut self, first: TreeEvent) -> (Vec<TreeEvent>, bool) {
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
    fn apply_events(&mut self, events: Vec<TreeEvent>, is_all: bool) {
        let path = self.path.clone();
        for event in events {
            // Values may run user code when dropped. A panic there must not affect other events.
            let _ = call_hook("drop of a value", &path, || self.take(event));
        }
        if is_all {
            // A complete listing is reported without a pause in between.
            self.complete();
        }
        while self.listed.is_none()
            && let Some(key) = self.unsettled.pop_first()
        {
            let _ = call_hook("drop of a value", &path, || self.settle(key));
        }
        if self.loaded {
            let snapshot = Arc::new(self.snapshot.clone());
            // Older values are dropped after subscribers were notified of the new ones.
            let before = self.current.swap(Arc::clone(&snapshot));
            let replaced = self.state.send_replace(Some(snapshot));
            drop((before, replaced));
        }
    }

    fn take(&mut self, event: TreeEvent) {
        match event {
            TreeEvent::Init => self.listed = Some(BTreeSet::new()),
            TreeEvent::Added(path, node) | TreeEvent::Updated(path, node) => {
                let Some(key) = self.key(&path) else { return };
                self.found(&key);
                self.read(key, node);
            }
            TreeEvent::Delete(path) => {
                if let Some(key) = self.key(&path) {
                    self.delete(&key);
                }
            }
            TreeEvent::Unreadable(path, error) => {
                let Some(key) = self.key(&path) else { return };
                self.found(&key);
                self.refuse(key, Rejection::unreadable(&error));
            }
            TreeEvent::Ready => self.complete(),
            // Known values stay, and the cache reports that they are stale.
            _ => {}
        }
    }

    /// Returns the key of a node, or `None` if the node is not a key: the folder itself, histories and
    /// reports of readers.
    fn key(&self, path: &str) -> Option<Arc<str>> {
        path.strip_prefix(&self.folder).filter(|key| is_key(key)).map(Arc::from)
    }

    fn read(&mut self, key: Arc<str>, node: Arc<Node>) {
        if node.data.is_empty() {
            self.unsettled.insert(Arc::clone(&key));
            self.empty.insert(key, node);
        } else {
            self.empty.remove(&key);
            self.apply(key, &node);
        }
    }

    /// Decides whether a node without data has an empty value: only if it has no children.
    fn settle(&mut self, key: Arc<str>) {
        let Some(node) = self.empty.get(&key).cloned() else { return };
        if self.is_parent(&key) {
            self.forget_value(&key);
        } else {
            self.apply(key, &node);
        }
    }

    fn is_parent(&self, key: &str) -> bool {
        let below = format!("{key}/");
        let next = self.known.range::<str, _>((Bound::Excluded(below.as_str()), Bound::Unbounded)).next();
        next.is_some_and(|next| next.starts_with(&below))
    }

    fn unsettle_parent(&mut self, key: &str) {
        if let Some((parent, _)) = key.rsplit_once('/')
            && let Some((parent, _)) = self.empty.get_key_value(parent)
        {
            self.unsettled.insert(Arc::clone(parent));
        }
    }

    fn apply(&mut self, key: Arc<str>, node: &Node) {
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
            // A new folder has no data and no children until its first key is created.
            Judgement::Refused(_) if node.data.is_empty() && !self.snapshot.values.contains_key(&key) => {
                self.snapshot.refused.remove(&key);
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
        self.known.remove(key);
        self.empty.remove(key);
        self.unsettle_parent(key);
        self.forget_value(key);
    }

    fn forget_value(&mut self, key: &str) {
        self.filters.remove(key);
        self.snapshot.values.remove(key);
        self.snapshot.refused.remove(key);
    }

    /// Notes that a node exists.
    fn found(&mut self, key: &Arc<str>) {
        if let Some(listed) = &mut self.listed {
            listed.insert(Arc::clone(key));
        }
        if self.known.insert(Arc::clone(key)) {
            self.unsettle_parent(key);
        }
    }

    /// Ends a complete listing: keys that it did not contain were deleted.
    fn complete(&mut self) {
        let Some(listed) = self.listed.take() else { return };
        self.loaded = true;
        let deleted: Vec<_> = self.known.difference(&listed).cloned().collect();
        for key in deleted {
            self.delete(&key);
        }
    }
}

/// Returns true if the node at a path below the folder may have a value. Histories, the reports of readers
/// and the folders of clients' own nodes have none.
fn is_key(below: &str) -> bool {
    let is_reserved = |segment| segment == history::FOLDER || segment == rollout::FOLDER;
    below.split('/').all(|segment| !is_reserved(segment) && !is_own_name(segment))
}
