use super::LayeredSnapshot;
use super::merged::Merged;
use crate::telemetry::Counts;
use crate::tree::SharedTreeFeed;
use crate::value::{Checks, ValueFormat};
use crate::{Raw, Rejection, SubscribeError, TreeSnapshot};
use arc_swap::ArcSwapOption;
use bytes::Bytes;
use docent_core::recipe::{Hooks, SyncStream, VersionedNode, ViewLag, spawn};
use docent_core::{Client, Error};
use futures_util::future::{select_all, try_join_all};
use futures_util::stream;
use serde::de::DeserializeOwned;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio_util::sync::{CancellationToken, DropGuard};

/// Follows all layers for all subscriptions of one `LayeredConfig`.
pub(super) struct SharedLayersFeed<T> {
    layers: Vec<SharedTreeFeed<Bytes>>,
    lag: ViewLag,
    /// The last valid value. Reads take no lock.
    pub(super) current: Arc<ArcSwapOption<LayeredSnapshot<T>>>,
    /// The task owns its sender and drops it when it ends.
    pub(super) state: watch::Receiver<LayersState<T>>,
    _task: DropGuard,
}

/// State of the merged value. The numbers show each subscription what is new.
pub(super) struct LayersState<T> {
    /// The last valid value, and the number of valid values so far.
    pub(super) good: Option<Arc<LayeredSnapshot<T>>>,
    pub(super) good_number: u64,
    /// Why the latest value is invalid, and the number of invalid values so far.
    pub(super) rejection: Option<Rejection>,
    pub(super) refused_number: u64,
}

impl<T: DeserializeOwned + Send + Sync + 'static> SharedLayersFeed<T> {
    pub(super) fn start(
        client: &Client,
        layers: &[VersionedNode],
        checks: &Checks<T>,
    ) -> Result<Self, Error> {
        let start = |layer: &VersionedNode| {
            SharedTreeFeed::start(layer, &ValueFormat::new(layer.path(), Arc::new(Raw)))
        };
        let feeds = layers.iter().map(start).collect::<Result<Vec<_>, _>>()?;
        let states = layers.iter().zip(&feeds);
        let current = Arc::new(ArcSwapOption::empty());
        let (sender, state) =
            watch::channel(LayersState { good: None, good_number: 0, rejection: None, refused_number: 0 });
        let (abandoned, hooks) = (CancellationToken::new(), Hooks::new(client, &checks.path));
        let lag = hooks.lag();
        let task = LayersTask {
            client: client.label().to_owned(),
            layers: states.map(|(layer, feed)| (layer.path().into(), feed.state.clone())).collect(),
            checks: checks.clone(),
            counts: Counts::new(client, None),
            judged: None,
            current: Arc::clone(&current),
            state: sender,
            abandoned: abandoned.clone(),
        };
        spawn(client, task.run(hooks));
        Ok(Self { layers: feeds, lag, current, state, _task: abandoned.drop_guard() })
    }
}

impl<T: Send + Sync + 'static> SharedLayersFeed<T> {
    /// Waits until there is a value to start with.
    pub(super) async fn ready(&self, path: &str) -> Result<(), SubscribeError> {
        try_join_all(self.layers.iter().map(SharedTreeFeed::ready)).await?;
        let mut state = self.state.clone();
        let judged = state.wait_for(|state| state.good.is_some() || state.rejection.is_some()).await;
        let state = judged.map_err(|_| Error::closed("subscribe", path))?;
        match &state.rejection {
            Some(rejection) if state.good.is_none() => {
                let (path, rejection) = (path.to_owned(), rejection.clone());
                Err(SubscribeError::Refused { path, rejection })
            }
            _ => Ok(()),
        }
    }

    pub(super) fn is_stale(&self) -> bool {
        self.layers.iter().any(|layer| layer.cache.is_stale() || layer.lag.is_behind())
            || self.lag.is_behind()
    }

    pub(super) fn stale_for(&self) -> Option<Duration> {
        let of_layer = |layer: &SharedTreeFeed<_>| layer.cache.stale_for().max(layer.lag.behind_for());
        self.layers.iter().filter_map(of_layer).max().max(self.lag.behind_for())
    }

    pub(super) fn last_error(&self) -> Option<Error> {
        self.layers.iter().find_map(|layer| layer.cache.last_error())
    }

    /// Returns the errors with which the servers refuse to list a layer.
    pub(super) fn errors(&self) -> SyncStream<Error> {
        SyncStream::new(stream::select_all(self.layers.iter().map(|layer| layer.cache.errors())))
    }
}

struct LayersTask<T> {
    client: String,
    /// Path and latest texts of each layer, the weakest first.
    layers: Vec<(Arc<str>, Texts)>,
    checks: Checks<T>,
    counts: Counts,
    /// The texts that were judged last.
    judged: Option<Merged>,
    current: Arc<ArcSwapOption<LayeredSnapshot<T>>>,
    state: watch::Sender<LayersState<T>>,
    abandoned: CancellationToken,
}

/// Texts of a layer, or `None` before it was read once.
type Texts = watch::Receiver<Option<Arc<TreeSnapshot<Bytes>>>>;

impl<T: DeserializeOwned + Send + Sync + 'static> LayersTask<T> {
    async fn run(mut self, hooks: Hooks) {
        loop {
            if let Some(merged) = self.changed_texts() {
                match hooks.run(self, |task| task.judge(merged)).await {
                    Some(task) => self = task,
                    None => return,
                }
            }
            let changes = self.layers.iter_mut().map(|(_, texts)| Box::pin(texts.changed()));
            tokio::select! {
                biased;
                () = self.abandoned.cancelled() => return,
                // Every layer's task ends with the client.
                (changed, ..) = select_all(changes) => if changed.is_err() { return },
            }
        }
    }

    /// Returns the latest texts, once all layers were read, unless these texts were judged last.
    fn changed_texts(&mut self) -> Option<Merged> {
        let layers = self.layers.iter_mut();
        let texts = layers.map(|(path, texts)| Some((&**path, texts.borrow_and_update().clone()?)));
        // All layers are marked as seen, even if one was not read yet.
        let texts: Vec<_> = texts.collect();
        let texts = texts.into_iter().collect::<Option<Vec<_>>>()?;
        let merged = Merged::of(texts.into_iter());
        let is_judged = self.judged.as_ref().is_some_and(|judged| judged.is_same(&merged));
        (!is_judged).then_some(merged)
    }

    fn judge(&mut self, merged: Merged) {
        let read = merged.read(&self.checks);
        self.judged = Some(merged);
        // The previous value is dropped after subscribers were notified of the new one.
        let _before = self.current.load_full();
        match read {
            Ok(snapshot) => {
                self.counts.applied();
                let snapshot = Arc::new(snapshot);
                self.current.store(Some(Arc::clone(&snapshot)));
                self.state.send_modify(|state| {
                    (state.good, state.rejection) = (Some(snapshot), None);
                    state.good_number += 1;
                });
            }
            Err(rejection) => {
                self.counts.refused();
                // Event: The texts of a layered configuration could not be read, do not fit the type, or were
                // rejected by validation. The last valid value stays in use.
                // Action: Correct the text of the key that the rejection names.
                tracing::warn!(target: "docent::config", client = %self.client, path = &*self.checks.path, %rejection, "rejected a layered configuration; keeping the last valid value");
                self.state.send_modify(|state| {
                    state.rejection = Some(rejection);
                    state.refused_number += 1;
                });
            }
        }
    }
}
