use super::value_state::{Latest, ValueState, Written};
use super::{Fallback, Judgement, NewestFilter};
use crate::file::{LocalFile, Record};
use crate::telemetry::Counts;
use crate::value::ValueFormat;
use crate::{Revision, Snapshot, SubscribeError};
use arc_swap::ArcSwapOption;
use docent_core::recipe::{Hooks, SharedNode, SyncStream, VersionedNode, ViewLag, spawn};
use docent_core::{Error, ErrorKind, Node, NodeCache, StateWatcher};
use futures_util::StreamExt;
use futures_util::stream::Fuse;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_util::sync::{CancellationToken, DropGuard};

/// Follows one value for all who subscribed to one `Config`: one task, and each value decoded once. The node
/// is read once for all of a client's feeds.
pub(crate) struct SharedFeed<T> {
    node: SharedNode,
    pub(crate) lag: ViewLag,
    /// The last good value. Read without a lock that anybody could hold.
    pub(crate) current: Arc<ArcSwapOption<Snapshot<T>>>,
    /// The newest `ValueState` of the value. Its sender belongs to the task, and goes with it.
    pub(crate) state: watch::Receiver<ValueState<T>>,
    /// Ends the task with the last subscription.
    _task: DropGuard,
}

impl<T: Send + Sync + 'static> SharedFeed<T> {
    pub(crate) fn start(
        versioned: &VersionedNode,
        format: &ValueFormat<T>,
        fallback: &Fallback<T>,
    ) -> Result<Self, Error> {
        let Fallback { default, file, .. } = fallback;
        let node = SharedNode::new(versioned.client(), versioned.path())?;
        let file = file.clone();
        let current = Arc::new(ArcSwapOption::new(default.clone()));
        let connection = versioned.client().state();
        let rollbacks = connection.current().rollbacks;
        let (sender, state) = watch::channel(ValueState::new(default.clone(), file.is_none(), rollbacks));
        let (abandoned, hooks) = (CancellationToken::new(), Hooks::new(versioned.client(), versioned.path()));
        let lag = hooks.lag();
        let task = FeedTask {
            path: versioned.path().to_owned(),
            changes: node.changes(),
            staleness: node.cache().staleness().fuse(),
            counts: Counts::new(versioned.client(), format.metrics_name.as_deref()),
            filter: NewestFilter::new(format.clone(), rollbacks),
            connection,
            current: Arc::clone(&current),
            state: sender,
            format: format.clone(),
            reading: file.clone().map(|file| tokio::task::spawn_blocking(move || file.load())),
            file,
            abandoned: abandoned.clone(),
        };
        spawn(versioned.client(), task.run(hooks));
        Ok(Self { node, lag, current, state, _task: abandoned.drop_guard() })
    }
}

impl<T> SharedFeed<T> {
    pub(crate) fn cache(&self) -> &NodeCache {
        self.node.cache()
    }

    /// Waits until there is something to begin with. Where the feed `was_running` already, its state may be
    /// older than what its client has written since: it is asked for as if it were not there.
    pub(crate) async fn ready(
        &self,
        was_running: bool,
        fallback_after: Duration,
    ) -> Result<(), SubscribeError> {
        let mut state = self.state.clone();
        // The task ends with the client.
        if state.has_changed().is_err() {
            return Err(Error::closed("subscribe", self.cache().path()).into());
        }
        let (mut read, mut patience) =
            (pin!(self.node.caught_up()), pin!(tokio::time::sleep(fallback_after)));
        let (mut answered, mut patient, mut failed) = (false, true, None);
        loop {
            {
                let state = state.borrow_and_update();
                let is_fresh = !was_running || !patient || (answered && self.has_heard(&state));
                let verdict = || verdict(self.cache().path(), &state, patient, failed.as_ref());
                if let Some(verdict) = is_fresh.then(verdict).flatten() {
                    return verdict;
                }
            }
            tokio::select! {
                biased;
                changed = state.changed() => if changed.is_err() {
                    return Err(Error::closed("subscribe", self.cache().path()).into());
                },
                result = &mut read, if !answered => {
                    answered = true;
                    if let Err(error) = result {
                        // Waiting longer would not help.
                        (patient, failed) = (false, Some(error));
                    }
                }
                () = &mut patience, if patient => patient = false,
            }
        }
    }
}

impl<T> SharedFeed<T> {
    /// True when the state is that of the node which the cache has now, or of a newer one.
    fn has_heard(&self, state: &ValueState<T>) -> bool {
        let known = self.cache().current().as_deref().map(written);
        state.heard.is_some_and(|heard| heard == known || known.zip(heard).is_some_and(|(k, h)| k.1 < h.1))
    }

    /// As [`ready`](Self::ready), and waits for a good value where there is none.
    pub(crate) async fn published(
        &self,
        was_running: bool,
        fallback_after: Duration,
    ) -> Result<(), SubscribeError> {
        let mut state = self.state.clone();
        loop {
            // Marked before the look, so that what comes after it ends the wait.
            state.mark_unchanged();
            match self.ready(was_running, fallback_after).await {
                // The task ends with the client, which the next look says.
                Err(SubscribeError::Missing { .. } | SubscribeError::Refused { .. }) => {
                    drop(state.changed().await);
                }
                // It took its time already: that of an operation.
                Err(SubscribeError::Core(error)) if error.kind() == ErrorKind::Timeout => {}
                done => return done,
            }
        }
    }
}

fn written(node: &Node) -> Written {
    (node.stat.czxid, node.stat.mzxid)
}

/// Whether a subscription can begin, once that is decided. `failed` says why the servers did not tell.
fn verdict<T>(
    path: &str,
    state: &ValueState<T>,
    patient: bool,
    failed: Option<&Error>,
) -> Option<Result<(), SubscribeError>> {
    let is_unknown = matches!(state.latest, Latest::Unknown);
    if failed.is_some_and(|error| error.kind() == ErrorKind::Closed) {
        return Some(Err(failed?.clone().into()));
    }
    if state.good.is_some() {
        // The file's comes after the default.
        return (!is_unknown || (!patient && state.file_read)).then_some(Ok(()));
    }
    if !state.file_read {
        return None;
    }
    match &state.latest {
        Latest::Missing => Some(Err(SubscribeError::Missing { path: path.to_owned() })),
        Latest::Refused(refusal) => {
            let (path, rejection) = (path.to_owned(), refusal.clone());
            Some(Err(SubscribeError::Refused { path, rejection }))
        }
        Latest::Good | Latest::Unknown => Some(Err(failed?.clone().into())),
    }
}

/// News that a `FeedTask` looks at.
enum News {
    /// Content of the local file.
    File(Option<Record>),
    /// Node that the servers have.
    Node(Option<Arc<Node>>),
}

struct FeedTask<T> {
    path: String,
    changes: SyncStream<Result<Option<Arc<Node>>, Error>>,
    staleness: Fuse<SyncStream<bool>>,
    counts: Counts,
    connection: StateWatcher,
    filter: NewestFilter<T>,
    current: Arc<ArcSwapOption<Snapshot<T>>>,
    state: watch::Sender<ValueState<T>>,
    format: ValueFormat<T>,
    /// The local file is being read.
    reading: Option<JoinHandle<Option<Record>>>,
    file: Option<LocalFile>,
    abandoned: CancellationToken,
}

impl<T: Send + Sync + 'static> FeedTask<T> {
    /// Never waits for the disk: a value is shown first and saved then.
    async fn run(mut self, hooks: Hooks) {
        loop {
            let news = tokio::select! {
                biased;
                () = self.abandoned.cancelled() => return,
                Some(is_stale) = self.staleness.next() => {
                    self.counts.stale(is_stale);
                    continue;
                }
                record = read(&mut self.reading) => News::File(record),
                node = self.changes.next() => match node {
                    Some(Ok(node)) => News::Node(node),
                    // The cache tells subscriptions.
                    Some(Err(_)) => continue,
                    None => return,
                },
            };
            if let News::File(None) | News::Node(None) = news {
                // Nothing to decode.
                hooks.run_here(&mut self, |task| task.hear(news));
                continue;
            }
            match hooks.run(self, |task| task.hear(news)).await {
                Some(task) => self = task,
                None => return,
            }
        }
    }

    fn hear(&mut self, news: News) {
        match news {
            News::File(record) => self.loaded(record),
            News::Node(node) => self.take(node),
        }
    }

    fn take(&mut self, node: Option<Arc<Node>>) {
        let heard = node.as_deref().map(written);
        let found = node.as_ref().map(|node| (Revision::from(&node.stat), &node.data));
        let judgement = self.filter.judge(found, self.connection.current().rollbacks);
        // The value before is dropped once the new one is told.
        let _before = self.current.load_full();
        match &judgement {
            Judgement::Good(snapshot) => {
                self.counts.applied();
                if let Some(revision) = snapshot.revision() {
                    self.counts.version(revision.version);
                }
                tracing::debug!(path = self.path, revision = ?snapshot.revision(), "a value arrived");
                self.current.store(Some(Arc::clone(snapshot)));
                if let (Some(file), Some(node), Some(revision)) = (&self.file, node, snapshot.revision()) {
                    file.save_soon(Record { revision, data: node.data.clone() });
                }
            }
            Judgement::Refused(refusal) => {
                self.counts.refused();
                tracing::warn!(path = self.path, %refusal, "a value is refused, the last good one stays");
            }
            Judgement::Missing => tracing::debug!(path = self.path, "nothing is published"),
            Judgement::Old => {
                tracing::warn!(path = self.path, "a value older than the last one is not shown");
            }
        }
        let rollbacks = self.filter.rollbacks();
        self.state.send_if_modified(|state| {
            state.rollbacks = rollbacks;
            let is_other = state.heard.replace(heard) != Some(heard);
            state.enter(&judgement) || is_other
        });
    }

    /// The local file was read.
    fn loaded(&mut self, record: Option<Record>) {
        self.reading = None;
        let snapshot = record.and_then(|Record { revision, data }| match self.format.read(&data) {
            Ok(value) => Some(Arc::new(Snapshot::new(value, revision, crate::Origin::File))),
            Err(refusal) => {
                tracing::warn!(path = self.path, %refusal, "the local snapshot is refused");
                None
            }
        });
        enter_file(&self.state, &self.current, snapshot);
    }
}

fn enter_file<T>(
    state: &watch::Sender<ValueState<T>>,
    current: &ArcSwapOption<Snapshot<T>>,
    snapshot: Option<Arc<Snapshot<T>>>,
) {
    state.send_modify(|state| {
        state.enter_file(snapshot);
        // Before anybody hears of it.
        current.store(state.good.clone());
    });
}

/// How long a disk is waited for.
const PATIENCE: Duration = Duration::from_secs(5);

async fn read(reading: &mut Option<JoinHandle<Option<Record>>>) -> Option<Record> {
    match reading {
        Some(reading) => tokio::time::timeout(PATIENCE, reading).await.ok()?.ok()?,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Origin;
    use futures_util::task::{ArcWake, waker};
    use std::sync::Mutex;
    use std::task::Context;
    use std::time::SystemTime;

    /// Looks for the value as soon as it is told that there is one.
    struct Listener {
        current: Arc<ArcSwapOption<Snapshot<u32>>>,
        found: Mutex<Option<u32>>,
    }

    impl ArcWake for Listener {
        fn wake_by_ref(listener: &Arc<Self>) {
            *listener.found.lock().unwrap() = listener.current.load().as_ref().map(|snapshot| ***snapshot);
        }
    }

    #[test]
    fn whoever_hears_that_there_is_a_value_finds_it() {
        let revision = Revision { czxid: 1, mzxid: 1, version: 0, modified: SystemTime::UNIX_EPOCH };
        let (sender, mut state) = watch::channel(ValueState::new(None, false, 0));
        let current = Arc::new(ArcSwapOption::empty());
        let listener = Arc::new(Listener { current: Arc::clone(&current), found: Mutex::default() });
        let waker = waker(Arc::clone(&listener));
        let mut changed = pin!(state.changed());
        assert!(changed.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
        enter_file(&sender, &current, Some(Arc::new(Snapshot::new(7, revision, Origin::File))));
        assert_eq!(*listener.found.lock().unwrap(), Some(7));
    }
}
