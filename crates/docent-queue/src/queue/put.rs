//! The producer's side of a queue.

use super::Queue;
use crate::error::PutError;
use crate::layout::QueueLayout;
use crate::store::{ItemPlace, Store, ensure_known_folder};
use crate::telemetry::publish_span;
use bytes::Bytes;
use docent_codec::CodecError;
use docent_core::recipe::{InOperation, call_hook};
use docent_core::{CreateMode, Error, Transaction};
use futures_util::future::BoxFuture;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;
use tracing::Instrument;

/// Mode of an item that outlives its producer.
const PERSISTENT: CreateMode = CreateMode::PersistentSequential;

/// Options of an item that is put: when it may be handed out, and before which other items.
///
/// ```
/// use docent_queue::PutOptions;
/// use std::time::Duration;
///
/// let retry_later = PutOptions::new().delay(Duration::from_secs(30)).priority(10);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[must_use = "options do nothing until they are used by a put"]
pub struct PutOptions {
    delay: Duration,
    priority: i32,
}

impl PutOptions {
    /// Creates the options of a plain put: no delay, and priority 0.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the delay before the item may be handed out. The resulting time is written into the item's name
    /// by this process's clock and compared with the clocks of consumers, so the clocks must agree as
    /// precisely as the delay requires.
    pub fn delay(mut self, delay: Duration) -> Self {
        self.delay = delay;
        self
    }

    /// Sets the priority. Items with a lower number are handed out first. Default 0. An item with a high
    /// number waits as long as items with lower numbers arrive.
    pub fn priority(mut self, priority: i32) -> Self {
        self.priority = priority;
        self
    }

    /// Returns the place of an item that is put now.
    ///
    /// # Errors
    /// `InvalidInput` in a layout whose names cannot contain a delay or a priority.
    pub(crate) fn place_in(&self, store: &Store) -> Result<ItemPlace, Error> {
        if *self != Self::default() && store.paths.layout != QueueLayout::Native {
            let rule = "an item with a delay or a priority must be put into a queue of the native layout";
            return Err(Error::invalid_input("put", rule));
        }
        let delay = u64::try_from(self.delay.as_millis()).unwrap_or(u64::MAX);
        let due = (!self.delay.is_zero()).then(|| store.time_of_day().saturating_add(delay));
        Ok(ItemPlace { priority: self.priority, due })
    }
}

impl<T: 'static> Queue<T> {
    /// Puts an item at the end of the queue, exactly once: if the reply is lost, the client finds out whether
    /// the item was put. The item is encoded when this method is called, and decoded again as a check.
    ///
    /// # Errors
    /// [`PutError`]. `OutcomeUnknown` only if the session ended, or the operation timeout passed, before the
    /// client could find out the outcome: the item may be in the queue, at most once.
    ///
    /// # Cancel safety
    /// This method is *not* cancel safe: the item may have been put.
    pub fn put(&self, item: &T) -> impl Future<Output = Result<(), PutError>> + use<T> {
        self.put_nodes(self.encode(item).map(|node| vec![node]), PutOptions::new(), PERSISTENT)
    }

    /// Puts an item like [`put`](Self::put), with a delay or a priority.
    ///
    /// # Errors
    /// Those of [`put`](Self::put); `InvalidInput` for options in Curator's layout.
    ///
    /// # Cancel safety
    /// This method is *not* cancel safe: the item may have been put.
    pub fn put_with(
        &self,
        item: &T,
        options: PutOptions,
    ) -> impl Future<Output = Result<(), PutError>> + use<T> {
        self.put_nodes(self.encode(item).map(|node| vec![node]), options, PERSISTENT)
    }

    /// Puts several items in one step, in their order and next to each other: all or none. Together they have
    /// to fit into one request, which is limited to 1 MiB by default.
    ///
    /// # Errors
    /// Those of [`put`](Self::put); `InvalidInput` if there are no items, `TooLarge` if they do not fit into
    /// one request.
    ///
    /// # Cancel safety
    /// This method is *not* cancel safe: the items may have been put.
    pub fn put_all<'a>(
        &self,
        items: impl IntoIterator<Item = &'a T>,
    ) -> BoxFuture<'static, Result<(), PutError>> {
        self.put_all_with(items, PutOptions::new())
    }

    /// Puts several items like [`put_all`](Self::put_all), with a delay or a priority.
    ///
    /// # Errors
    /// Those of [`put_all`](Self::put_all); `InvalidInput` for options in Curator's layout.
    ///
    /// # Cancel safety
    /// This method is *not* cancel safe: the items may have been put.
    pub fn put_all_with<'a>(
        &self,
        items: impl IntoIterator<Item = &'a T>,
        options: PutOptions,
    ) -> BoxFuture<'static, Result<(), PutError>> {
        let nodes = items.into_iter().map(|item| self.encode(item)).collect();
        Box::pin(self.put_nodes(nodes, options, PERSISTENT))
    }

    /// Puts an item like [`put`](Self::put), as an ephemeral node that is deleted with the session of this
    /// client, for example when the producer exits. Requires [`ordered`](crate::QueueBuilder::ordered) mode:
    /// without it, an item in work has a child, which an ephemeral node cannot have.
    ///
    /// # Errors
    /// Those of [`put`](Self::put); `InvalidInput` without `ordered` mode.
    ///
    /// # Cancel safety
    /// This method is *not* cancel safe: the item may have been put.
    pub fn put_ephemeral(&self, item: &T) -> impl Future<Output = Result<(), PutError>> + use<T> {
        let is_ordered = self.store.lock.is_some();
        let nodes = self.encode(item).map(|node| vec![node]);
        let put = self.put_nodes(nodes, PutOptions::new(), CreateMode::EphemeralSequential);
        async move {
            if !is_ordered {
                let rule = "an ephemeral item must be put into a queue in ordered mode, because an ephemeral node cannot have children";
                return Err(Error::invalid_input("put", rule).into());
            }
            put.await
        }
    }

    /// Encodes an item as the data of a node, and checks that consumers can decode it.
    pub(super) fn encode(&self, item: &T) -> Result<Bytes, PutError> {
        self.store.items.frame(&self.encoded(item)?)
    }

    fn encoded(&self, item: &T) -> Result<Bytes, PutError> {
        let encoded = self.codec.encode(item).map_err(PutError::Encode)?;
        match call_hook("codec", &self.store.path, || self.codec.decode(&encoded)) {
            Ok(Ok(_)) => Ok(encoded),
            Ok(Err(error)) => Err(PutError::Unreadable(error)),
            Err(panic) => Err(PutError::Unreadable(CodecError::new(panic.to_string()))),
        }
    }

    fn put_nodes(
        &self,
        nodes: Result<Vec<Bytes>, PutError>,
        options: PutOptions,
        mode: CreateMode,
    ) -> impl Future<Output = Result<(), PutError>> + use<T> {
        let store = Arc::clone(&self.store);
        async move {
            let nodes = nodes?;
            if nodes.is_empty() {
                return Err(Error::invalid_input("put", "a batch of 0 items must be at least 1").into());
            }
            let place = options.place_in(&store)?;
            let span = publish_span(store.client.label(), &store.path, nodes.len());
            store.items.put(&nodes, place, mode).instrument(span).await.in_operation("put")?;
            if place != ItemPlace::default() {
                // The item may precede the items in the last listing.
                store.dispatcher.request_listing();
            }
            Ok(())
        }
    }

    /// Adds the put of an item to a transaction, once the queue has room for the item.
    pub(super) async fn prepare_put(
        &self,
        transaction: Transaction,
        item: &T,
    ) -> Result<Transaction, PutError> {
        let node = self.encode(item)?;
        let items = &self.store.items;
        items.check_put(1).await?;
        ensure_known_folder(&self.store.client, &self.store.paths.items).await?;
        Ok(items.add(transaction, &[node], ItemPlace::default(), PERSISTENT))
    }
}
