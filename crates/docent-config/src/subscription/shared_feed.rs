use super::newest_filter::{Latest, ValueState, Written};
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

/// Follows one value for all subscriptions of one `Config`, with one task, so that each value is decoded
/// once. All feeds of a client share one read of the node.
pub(crate) struct SharedFeed<T> {
    node: SharedNode,
    pub(crate) lag: ViewLag,
    /// The last valid value. Reads take no lock.
    pub(crate) current: Arc<ArcSwapOption<Snapshot<T>>>,
    /// The latest `ValueState` of the value. The task owns its sender and drops it when it ends.
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
            client: versioned.client().label().to_owned(),
            path: versioned.path_at_servers(),
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

    /// Waits until there is a value to start with. If the feed `was_running` already, its state may be older
    /// than this client's last write, so the state must be refreshed first.
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
                let is_fresh = !was_running || !patient || (answered && self.is_caught_up(&state));
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

    /// Returns true if the state matches the node that the cache has now, or a newer one.
    fn is_caught_up(&self, state: &ValueState<T>) -> bool {
        let known = self.cache().current().as_deref().map(written);
        state.processed.is_some_and(|processed| {
            processed == known || known.zip(processed).is_some_and(|(k, h)| k.1 < h.1)
        })
    }

    /// Like [`ready`](Self::ready), but waits for a valid value if there is none.
    pub(crate) async fn published(
        &self,
        was_running: bool,
        fallback_after: Duration,
    ) -> Result<(), SubscribeError> {
        let mut state = self.state.clone();
        loop {
            // Mark the state before the check, so that any later change ends the wait.
            state.mark_unchanged();
            match self.ready(was_running, fallback_after).await {
                // The task ends with the client, and the next check reports that.
                Err(SubscribeError::Missing { .. } | SubscribeError::Refused { .. }) => {
                    drop(state.changed().await);
                }
                // The attempt has already taken the time of an operation, so it can be repeated immediately.
                Err(SubscribeError::Core(error)) if error.kind() == ErrorKind::Timeout => {}
                done => return done,
            }
        }
    }
}

fn written(node: &Node) -> Written {
    (node.stat.czxid, node.stat.mzxid)
}

/// Decides whether a subscription can start; `None` if this is still open. `failed` is the reason why the
/// servers did not answer.
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
        // A value from the file arrives after the default.
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

/// Input of a `FeedTask`.
enum Update {
    /// Content of the local file.
    File(Option<Record>),
    /// Node on the servers.
    Node(Option<Arc<Node>>),
}

struct FeedTask<T> {
    client: String,
    /// Path as the servers know it.
    path: String,
    changes: SyncStream<Result<Option<Arc<Node>>, Error>>,
    staleness: Fuse<SyncStream<bool>>,
    counts: Counts,
    connection: StateWatcher,
    filter: NewestFilter<T>,
    current: Arc<ArcSwapOption<Snapshot<T>>>,
    state: watch::Sender<ValueState<T>>,
    format: ValueFormat<T>,
    /// Set while the local file is being read.
    reading: Option<JoinHandle<Option<Record>>>,
    file: Option<LocalFile>,
    abandoned: CancellationToken,
}

impl<T: Send + Sync + 'static> FeedTask<T> {
    /// Runs the task. It never waits for the disk: a value is shown first and saved afterwards.
    async fn run(mut self, hooks: Hooks) {
        loop {
            let update = tokio::select! {
                biased;
                () = self.abandoned.cancelled() => return,
                Some(is_stale) = self.staleness.next() => {
                    self.counts.stale(is_stale);
                    continue;
                }
                record = read(&mut self.reading) => Update::File(record),
                node = self.changes.next() => match node {
                    Some(Ok(node)) => Update::Node(node),
                    // The cache reports the error to subscriptions.
                    Some(Err(_)) => continue,
                    None => return,
                },
            };
            if let Update::File(None) | Update::Node(None) = update {
                // There is nothing to decode.
                hooks.run_inline(&mut self, |task| task.apply(update));
                continue;
            }
            match hooks.run(self, |task| task.apply(update)).await {
                Some(task) => self = task,
                None => return,
            }
        }
    }

    fn apply(&mut self, update: Update) {
        match update {
            Update::File(record) => self.loaded(record),
            Update::Node(node) => self.take(node),
        }
    }

    fn take(&mut self, node: Option<Arc<Node>>) {
        let processed = node.as_deref().map(written);
        let found = node.as_ref().map(|node| (Revision::from(&node.stat), &node.data));
        let judgement = self.filter.judge(found, self.connection.current().rollbacks);
        // The previous value is dropped after subscribers were notified of the new one.
        let _before = self.current.load_full();
        match &judgement {
            Judgement::Good(snapshot) => {
                self.counts.applied();
                if let Some(revision) = snapshot.revision() {
                    self.counts.version(revision.version);
                }
                // Event: A subscription received a valid value and now uses it.
                tracing::debug!(target: "docent::config", client = %self.client, path = %self.path, revision = ?snapshot.revision(), "a configuration value arrived");
                self.current.store(Some(Arc::clone(snapshot)));
                if let (Some(file), Some(node), Some(revision)) = (&self.file, node, snapshot.revision()) {
                    file.save_soon(Record { revision, data: node.data.clone() });
                }
            }
            Judgement::Refused(refusal) => {
                self.counts.refused();
                // Event: A published value could not be decoded, or validation rejected it. The last valid
                // value stays in use.
                // Action: Correct the published value, or roll it back.
                tracing::warn!(target: "docent::config", client = %self.client, path = %self.path, %refusal, "rejected a configuration value; keeping the last valid one");
            }
            // Event: The node of a followed value does not exist. The last valid value or the default stays
            // in use.
            Judgement::Missing => {
                tracing::debug!(target: "docent::config", client = %self.client, path = %self.path, "no configuration value is published");
            }
            Judgement::Old => {
                // Event: A server that lags behind delivered an older value than the client has seen. The
                // newer value stays in use.
                // Action: If this repeats, check whether a server of the ensemble lags behind its leader.
                tracing::warn!(
                    target: "docent::config",
                    client = %self.client,
                    path = %self.path,
                    "ignored a configuration value that is older than the last one"
                );
            }
        }
        let rollbacks = self.filter.rollbacks();
        self.state.send_if_modified(|state| {
            state.rollbacks = rollbacks;
            let is_other = state.processed.replace(processed) != Some(processed);
            state.enter(&judgement) || is_other
        });
    }

    /// Handles the result of reading the local file.
    fn loaded(&mut self, record: Option<Record>) {
        self.reading = None;
        let snapshot = record.and_then(|Record { revision, data }| match self.format.read(&data) {
            Ok(value) => Some(Arc::new(Snapshot::new(value, revision, crate::Origin::File))),
            Err(refusal) => {
                // Event: The value in the snapshot file could not be decoded, or validation rejected it, for
                // example after an update of the program.
                tracing::warn!(target: "docent::config", client = %self.client, path = %self.path, %refusal, "rejected the value of the snapshot file; continuing without it");
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
        // Store the value before subscribers are notified.
        current.store(state.good.clone());
    });
}

/// Maximum time to wait for a disk.
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

    /// Reads the value as soon as it is notified of one.
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
    fn a_value_is_readable_once_it_is_reported() {
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
