use super::{DeadLetters, QueueBuilder};
use crate::store::Store;
use bytes::Bytes;
use docent_codec::{Codec, Json};
use docent_core::recipe::{call_hook, debug_handle};
use docent_core::{Client, Error};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fmt;
use std::sync::Arc;

/// A FIFO queue of durable items: put by producers, taken by consumers, deleted when they are acknowledged.
///
/// Cheap to clone; clones share what they know of the queue. For users of Curator: `DistributedQueue` with a
/// lock path, whose items are not lost with their consumer.
///
/// # Expected flow
/// A producer [puts](Self::put) an item, which is a persistent node with a number. A consumer
/// [takes](Self::take) the lowest one that nobody has claimed: it makes an ephemeral node of the item's name
/// in the folder of the claims. [`Delivery::ack`](crate::Delivery::ack) deletes both;
/// [`Delivery::nack`](crate::Delivery::nack), the drop of the delivery or the end of the consumer's session
/// deletes the claim alone, and the item is in its place again.
///
/// One listing of the items and one of the claims show what is free, so that a take costs the same whatever
/// others work on. All calls of one process share them: one task claims for all that wait, in one write.
///
/// A process that finds nothing joins a line. Only the first two in it watch the folders; when one gets an
/// item the next in the line watches. So a put wakes the process that gets it, the second one, which steps in
/// a quarter of a second later where the first is dead, and the process that watches from then on, however
/// many wait.
///
/// # Guarantees
/// - An item whose put succeeded is in the queue exactly once until it is acknowledged, and deleted by
///   nothing else than [`purge`](Self::purge) and what deletes dead letters.
/// - Items are claimed for the first time in the order in which they were put, those of a lower
///   [priority](crate::PutOptions::priority) first. An item that comes back is before all later ones; a
///   consumer with work in sight sees it within half a second; beside 100,000 other items, within 5 s.
/// - At least once: an item is handed out again when its consumer dies, or loses its session, before it
///   acknowledged. With [`Delivery::ack_with`](crate::Delivery::ack_with) effects in ZooKeeper happen exactly
///   once.
/// - An item that is handed out too often or cannot be decoded by anybody goes to the [dead
///   letters](Self::dead_letters) and blocks nobody. Hand-outs are counted, not claims: a call that is
///   cancelled before it got its item uses nothing up.
///
/// # Assumptions
/// All who use the queue have the same [layout](crate::QueueLayout) and mode. Nobody but the queue writes
/// below its path.
///
/// # Examples
/// ```no_run
/// # use docent_core::Client;
/// # use docent_queue::Queue;
/// # use futures_util::TryStreamExt;
/// # use serde::{Deserialize, Serialize};
/// # #[derive(Serialize, Deserialize)] struct Job { id: u64 }
/// # async fn work(_: &Job) -> Result<(), std::fmt::Error> { Ok(()) }
/// # async fn example(client: Client) -> Result<(), Box<dyn std::error::Error>> {
/// let jobs = Queue::<Job>::new(&client, "/queues/jobs")?;
/// jobs.put(&Job { id: 7 }).await?;
///
/// let mut deliveries = jobs.deliveries();
/// while let Some(delivery) = deliveries.try_next().await? {
///     match delivery.run(work(delivery.item())).await {
///         Ok(Ok(())) => delivery.ack().await?,
///         Ok(Err(_)) => delivery.nack()?,
///         Err(lost) => println!("somebody else gets it: {lost}"),
///     }
/// }
/// # Ok(()) }
/// ```
pub struct Queue<T> {
    pub(crate) store: Arc<Store>,
    pub(super) codec: Arc<dyn Codec<T>>,
}

impl<T> Clone for Queue<T> {
    fn clone(&self) -> Self {
        Self { store: Arc::clone(&self.store), codec: Arc::clone(&self.codec) }
    }
}

impl<T: Serialize + DeserializeOwned + 'static> Queue<T> {
    /// The queue at `path`, with items as JSON and otherwise default settings. It need not exist yet.
    ///
    /// # Errors
    /// `InvalidInput` when the path breaks a rule or is the root.
    pub fn new(client: &Client, path: &str) -> Result<Self, Error> {
        Self::builder(client, path).build()
    }

    /// Prepares a queue with settings of its own.
    pub fn builder(client: &Client, path: &str) -> QueueBuilder<T> {
        Self::builder_with(client, path, Json::new())
    }
}

impl<T: 'static> Queue<T> {
    /// Prepares a queue with a codec of its own.
    pub fn builder_with(client: &Client, path: &str, codec: impl Codec<T>) -> QueueBuilder<T> {
        QueueBuilder::new(client, path, Arc::new(codec))
    }

    pub(super) fn of(store: Arc<Store>, codec: Arc<dyn Codec<T>>) -> Self {
        Self { store, codec }
    }

    /// The path, as it was given.
    pub fn path(&self) -> &str {
        &self.store.path
    }

    /// Largest item in bytes, encoded: what the client sends at most, without 4 KiB and twice the path for
    /// what stands around it.
    pub fn max_item(&self) -> usize {
        self.store.items.max_item()
    }

    /// The items that were handed out too often, rejected, or could not be decoded.
    pub fn dead_letters(&self) -> DeadLetters<T> {
        DeadLetters::new(self.clone())
    }

    /// The item in the data of a node.
    pub(super) fn decode(&self, node: &Bytes) -> Result<T, String> {
        let (_, item) = self.store.paths.unframe(node)?;
        // A decoder that panics at an item would do so again and again, and nobody got the ones behind it.
        match call_hook("codec", &self.store.path, || self.codec.decode(&item)) {
            // The item is kept, and what else the codec has to say may repeat parts of it.
            Ok(decoded) => decoded.map_err(|error| error.summary().to_owned()),
            Err(panic) => Err(panic.to_string()),
        }
    }
}

impl<T> fmt::Debug for Queue<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        debug_handle(f, "Queue", &self.store.path, &self.store.client).finish_non_exhaustive()
    }
}
