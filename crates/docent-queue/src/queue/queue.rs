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

/// A FIFO queue of durable items: producers put items, consumers take them, and an acknowledgement deletes
/// them.
///
/// Cheap to clone; clones share what they know of the queue. For users of Curator: this corresponds to
/// `DistributedQueue` with a lock path, which keeps the items of a consumer that exits.
///
/// # Expected flow
/// A producer [puts](Self::put) an item, which is a persistent sequential node. A consumer
/// [takes](Self::take) the lowest item that is not claimed: it creates an ephemeral node with the item's name
/// in the folder of the claims. [`Delivery::ack`](crate::Delivery::ack) deletes both nodes.
/// [`Delivery::nack`](crate::Delivery::nack), the drop of the delivery or the end of the consumer's session
/// ends only the claim, and the item is back in its place. After `nack` or a drop, it is free after a delay.
///
/// One listing of the items and one of the claims show which items are free, so the cost of a take does not
/// depend on the number of items in work. All calls of one process share these listings: one task claims for
/// all waiting calls, in one write.
///
/// A process that finds no item joins a line. Only the first two processes in the line watch the folders.
/// When one of them gets an item, the next process in the line starts to watch. A put therefore wakes three
/// processes, independent of the number of waiting processes: the first one, which gets the item; the second
/// one, which steps in a quarter of a second later if the first is dead; and the process that watches from
/// then on.
///
/// # Guarantees
/// - An item whose put succeeded is in the queue, or in its dead letters, exactly once until it is
///   acknowledged. Apart from that, only [`purge`](Self::purge) and the deletion of dead letters delete it.
/// - Items are claimed for the first time in the order in which they were put, items with a lower
///   [priority](crate::PutOptions::priority) first. An item that returns precedes all later items. A consumer
///   that still has other items to take notices the returned item within half a second, or within 5 s if the
///   queue has 100,000 items.
/// - At least once: an item is handed out again if its consumer exits or loses its lease or session before
///   the acknowledgement. With [`Delivery::ack_with`](crate::Delivery::ack_with), effects in ZooKeeper happen
///   exactly once.
/// - An item that is handed out too often, or that no consumer can decode, is moved to the [dead
///   letters](Self::dead_letters) and does not block the queue. If ten items in a row have another format,
///   they stay, and the consumer gets an [error](Self::take). Only hand-outs are counted, not claims: a
///   call that is cancelled before it got its item uses up no delivery.
///
/// # Assumptions
/// All users of the queue have the same [layout](crate::QueueLayout), and the same setting of
/// [`ordered`](crate::QueueBuilder::ordered). Only the queue writes below its path.
///
/// # Examples
/// ```no_run
/// # use docent_core::Client;
/// # use docent_queue::Queue;
/// # use serde::{Deserialize, Serialize};
/// # #[derive(Serialize, Deserialize)] struct Job { id: u64 }
/// # async fn work(_: &Job) -> Result<(), std::fmt::Error> { Ok(()) }
/// # async fn example(client: Client) -> Result<(), Box<dyn std::error::Error>> {
/// let jobs = Queue::<Job>::new(&client, "/queues/jobs")?;
/// jobs.put(&Job { id: 7 }).await?;
///
/// // Acknowledges an item whose work returns `Ok`, and gives it back otherwise.
/// jobs.consume(async |job: &Job| work(job).await).await?;
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
    /// Creates a handle for the queue at `path`, with items encoded as JSON and otherwise default settings.
    /// The queue does not have to exist yet.
    ///
    /// # Errors
    /// `InvalidInput` if the path breaks a rule or is the root.
    pub fn new(client: &Client, path: &str) -> Result<Self, Error> {
        Self::builder(client, path).build()
    }

    /// Returns a builder for a queue with custom settings.
    pub fn builder(client: &Client, path: &str) -> QueueBuilder<T> {
        Self::builder_with(client, path, Json::new())
    }
}

impl<T: 'static> Queue<T> {
    /// Returns a builder for a queue with a custom codec.
    pub fn builder_with(client: &Client, path: &str, codec: impl Codec<T>) -> QueueBuilder<T> {
        QueueBuilder::new(client, path, Arc::new(codec))
    }

    /// Returns the path that was passed to the constructor.
    pub fn path(&self) -> &str {
        &self.store.path
    }

    /// Returns the maximum size of an encoded item in bytes: the client's request limit, minus 4 KiB and
    /// twice the length of the path for the rest of the request.
    pub fn max_item(&self) -> usize {
        self.store.items.max_item()
    }

    /// Returns a handle for the items that were handed out too often, rejected, or could not be decoded.
    pub fn dead_letters(&self) -> DeadLetters<T> {
        DeadLetters::new(self.clone())
    }

    /// Decodes the item in the data of a node.
    pub(super) fn decode(&self, node: &Bytes) -> Result<T, String> {
        let (_, item) = self.store.paths.unframe(node)?;
        // A decoder that panics on an item would panic again and again, and the items behind it would never
        // be handed out.
        match call_hook("codec", &self.store.path, || self.codec.decode(&item)) {
            // The item is kept, so only the summary is used: the rest of the codec's error may repeat parts
            // of the item.
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
