//! The producer's side of a queue.

use super::{PutOptions, Queue};
use crate::error::PutError;
use crate::store::{Place, ensure_known_folder};
use crate::telemetry::publish_span;
use bytes::Bytes;
use docent_codec::CodecError;
use docent_core::recipe::call_hook;
use docent_core::{CreateMode, Error, Transaction};
use futures_util::future::BoxFuture;
use std::future::Future;
use std::sync::Arc;
use tracing::Instrument;

/// Mode of an item that outlives its producer.
const PERSISTENT: CreateMode = CreateMode::PersistentSequential;

impl<T: 'static> Queue<T> {
    /// Puts an item at the end of the queue, exactly once: when the reply is lost it is found out whether the
    /// item is there. The item is encoded, and decoded to see that it can be, when this is called.
    ///
    /// # Errors
    /// [`PutError`]. `OutcomeUnknown` only when the session ended, or the operation timeout passed, before it
    /// could be found out: the item may be in the queue, once.
    ///
    /// # Cancel safety
    /// This method is *not* cancel safe: the item may have been put.
    pub fn put(&self, item: &T) -> impl Future<Output = Result<(), PutError>> + use<T> {
        self.put_nodes(self.encode(item).map(|node| vec![node]), PutOptions::new(), PERSISTENT)
    }

    /// As [`put`](Self::put), with a delay or a priority.
    ///
    /// # Errors
    /// As [`put`](Self::put); `InvalidInput` for options in Curator's layout.
    ///
    /// # Cancel safety
    /// As [`put`](Self::put).
    pub fn put_with(
        &self,
        item: &T,
        options: PutOptions,
    ) -> impl Future<Output = Result<(), PutError>> + use<T> {
        self.put_nodes(self.encode(item).map(|node| vec![node]), options, PERSISTENT)
    }

    /// Puts several items in one step, in their order and next to each other: all or none. Together they fit
    /// into one request, which is 1 MiB by default.
    ///
    /// # Errors
    /// As [`put`](Self::put); `InvalidInput` for none, `TooLarge` when they do not fit.
    ///
    /// # Cancel safety
    /// As [`put`](Self::put).
    pub fn put_all<'a>(
        &self,
        items: impl IntoIterator<Item = &'a T>,
    ) -> BoxFuture<'static, Result<(), PutError>> {
        self.put_all_with(items, PutOptions::new())
    }

    /// As [`put_all`](Self::put_all), with a delay or a priority.
    ///
    /// # Errors
    /// As [`put_all`](Self::put_all); `InvalidInput` for options in Curator's layout.
    ///
    /// # Cancel safety
    /// As [`put`](Self::put).
    pub fn put_all_with<'a>(
        &self,
        items: impl IntoIterator<Item = &'a T>,
        options: PutOptions,
    ) -> BoxFuture<'static, Result<(), PutError>> {
        let nodes = items.into_iter().map(|item| self.encode(item)).collect();
        Box::pin(self.put_nodes(nodes, options, PERSISTENT))
    }

    /// As [`put`](Self::put), an item that goes with the session of this client: with the producer, when that
    /// dies. In [`ordered`](crate::QueueBuilder::ordered) mode only, because its deliveries are counted in
    /// another way: an ephemeral node can have no child.
    ///
    /// # Errors
    /// As [`put`](Self::put); `InvalidInput` in another mode.
    ///
    /// # Cancel safety
    /// As [`put`](Self::put).
    pub fn put_ephemeral(&self, item: &T) -> impl Future<Output = Result<(), PutError>> + use<T> {
        let is_ordered = self.store.lock.is_some();
        let nodes = self.encode(item).map(|node| vec![node]);
        let put = self.put_nodes(nodes, PutOptions::new(), CreateMode::EphemeralSequential);
        async move {
            if !is_ordered {
                let rule = "an ephemeral item must be put into a queue in ordered mode: it can have no child";
                return Err(Error::invalid_input("put", rule).into());
            }
            put.await
        }
    }

    /// The data of the node of an item that every consumer can read.
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
            store.items.put(&nodes, place, mode).instrument(span).await?;
            if place != Place::default() {
                // It may go before those that are listed.
                store.desk.look_again();
            }
            Ok(())
        }
    }

    /// Adds the put of an item to a transaction, once there is room for it.
    pub(super) async fn prepare_put(
        &self,
        transaction: Transaction,
        item: &T,
    ) -> Result<Transaction, PutError> {
        let node = self.encode(item)?;
        let items = &self.store.items;
        items.takes(1).await?;
        ensure_known_folder(&self.store.client, &self.store.paths.items).await?;
        Ok(items.add(transaction, &[node], Place::default(), PERSISTENT))
    }
}
