use super::QueueBuilder;
use crate::dead_letters::DeadLetters;
use crate::error::PutError;
use crate::layout::QueueLayout;
use crate::store::{Store, ensure_folder};
use docent_codec::{Codec, Json};
use docent_core::{Client, CreateMode, Error, ErrorKind};
use futures_util::stream::{self, StreamExt, TryStreamExt};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fmt;
use std::sync::Arc;

/// Deletes of a purge under way at the same time.
const AT_ONCE: usize = 64;

/// A FIFO queue of durable items: put by producers, taken by consumers, deleted when they are acknowledged.
///
/// Cheap to clone; clones share what they know of the queue. For users of Curator: `DistributedQueue` with a
/// lock path, whose items are not lost with their consumer.
///
/// # Expected flow
/// A producer [puts](Self::put) an item, which is a persistent node with a number. A consumer
/// [takes](Self::take) the lowest one that nobody has claimed: it makes an ephemeral child of it, the claim.
/// [`Delivery::ack`](crate::Delivery::ack) deletes both; [`Delivery::nack`](crate::Delivery::nack), the drop
/// of the delivery or the end of the consumer's session deletes the claim alone, and the item is in its place
/// again.
///
/// A consumer that finds nothing joins a line. Only the first in it watches the queue, and the oldest claims;
/// when it gets an item the next in the line watches. So a put wakes the consumer that gets it, and the
/// consumer that watches from then on, however many wait.
///
/// # Guarantees
/// - An item whose put succeeded is in the queue exactly once until it is acknowledged, and deleted by
///   nothing else than [`purge`](Self::purge) and what deletes dead letters.
/// - Items are claimed for the first time in the order in which they were put. An item that comes back is
///   before all later ones; a consumer with work in sight sees it within half a second.
/// - At least once: an item is handed out again when its consumer dies, or loses its session, before it
///   acknowledged. With [`Delivery::ack_with`](crate::Delivery::ack_with) effects in ZooKeeper happen exactly
///   once.
/// - An item that is handed out too often or cannot be decoded goes to the [dead letters](Self::dead_letters)
///   and blocks nobody.
///
/// # Assumptions
/// All who use the queue have the same [layout](crate::QueueLayout) and mode. Items have no children but
/// claims. Waiting futures are polled: the first in the line watches for all.
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
///         Ok(Err(_)) => delivery.nack().await?,
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

    /// Number of items, items in work included, at the server this client talks to. Other children of the
    /// folder count.
    ///
    /// # Errors
    /// `NoAuth`, `Timeout`, `Closed`.
    ///
    /// # Cancel safety
    /// This method is cancel safe.
    pub async fn len(&self) -> Result<usize, Error> {
        self.store.items.length().await
    }

    /// True when there is no item, at the server this client talks to.
    ///
    /// # Errors
    /// As [`len`](Self::len).
    ///
    /// # Cancel safety
    /// This method is cancel safe.
    pub async fn is_empty(&self) -> Result<bool, Error> {
        Ok(self.len().await? == 0)
    }

    /// Deletes all items that are there and nobody works on, for good, and returns how many. In `ordered`
    /// mode that includes the item that is worked on, which has no claim: its acknowledgement fails then.
    ///
    /// # Errors
    /// `NoAuth`, `Timeout`, `Closed`, `OutcomeUnknown`: then some may be deleted.
    ///
    /// # Cancel safety
    /// This method is *not* cancel safe: some may be deleted. Doing it again does no harm.
    pub async fn purge(&self) -> Result<usize, Error> {
        use ErrorKind::{NoNode, NodeExists, NotEmpty};
        let names = self.store.items.list().await?;
        if let (QueueLayout::Curator { lock_path }, false) = (&self.store.paths.layout, names.is_empty()) {
            ensure_folder(&self.store.client, lock_path).await?;
        }
        let delete = |name: String| async move {
            let Store { client, paths, .. } = &*self.store;
            let (item, claim) = (paths.item(&name), paths.claim(&name));
            let delete = match paths.layout {
                QueueLayout::Native => client.transaction().delete(&item, None),
                // A consumer that claims it first keeps it: also in this layout the delete is one step.
                QueueLayout::Curator { .. } => client
                    .transaction()
                    .create(&claim, "", CreateMode::Ephemeral)
                    .delete(&item, None)
                    .delete(&claim, None),
            };
            match delete.commit_exactly().await {
                Ok(_) => Ok(1),
                // It is gone already, or claimed.
                Err(error) if matches!(error.kind(), NoNode | NotEmpty | NodeExists) => Ok(0),
                Err(error) => Err(error),
            }
        };
        let deleted = stream::iter(names).map(delete).buffer_unordered(AT_ONCE);
        deleted.try_fold(0, |sum, one| async move { Ok(sum + one) }).await
    }

    /// Deletes the folder of the items if there is none, so that their numbers begin at 0 again.
    ///
    /// # Errors
    /// `NotEmpty` when there are items; `NoAuth`, `Timeout`, `Closed`.
    ///
    /// # Cancel safety
    /// This method is cancel safe: doing it again does no harm.
    pub async fn reset(&self) -> Result<(), Error> {
        self.store.client.ensure_absent(&self.store.paths.items).await?;
        self.store.items.numbers_begin_anew();
        Ok(())
    }

    /// The items that were handed out too often or could not be decoded.
    pub fn dead_letters(&self) -> DeadLetters {
        DeadLetters::new(&self.store)
    }

    /// Puts an item at the end of the queue, exactly once: when the reply is lost it is found out whether the
    /// item is there.
    ///
    /// # Errors
    /// [`PutError`]. `OutcomeUnknown` only when the session ended, or the operation timeout passed, before it
    /// could be found out: the item may be in the queue, once.
    ///
    /// # Cancel safety
    /// This method is *not* cancel safe: the item may have been put.
    pub async fn put(&self, item: &T) -> Result<(), PutError> {
        self.put_as([item], CreateMode::PersistentSequential).await
    }

    /// Puts several items in one step, in their order and next to each other: all or none. Together they fit
    /// into one request, which is 1 MiB by default.
    ///
    /// # Errors
    /// As [`put`](Self::put); `InvalidInput` for none, `TooLarge` when they do not fit.
    ///
    /// # Cancel safety
    /// This method is *not* cancel safe: the items may have been put.
    pub async fn put_all<'a>(&self, items: impl IntoIterator<Item = &'a T>) -> Result<(), PutError>
    where
        T: 'a,
    {
        self.put_as(items, CreateMode::PersistentSequential).await
    }

    /// As [`put`](Self::put), an item that goes with the session of this client: with the producer, when that
    /// dies. In [`ordered`](QueueBuilder::ordered) mode only, because an ephemeral node can have no claim.
    ///
    /// # Errors
    /// As [`put`](Self::put); `InvalidInput` in another mode.
    ///
    /// # Cancel safety
    /// This method is *not* cancel safe: the item may have been put.
    pub async fn put_ephemeral(&self, item: &T) -> Result<(), PutError> {
        if self.store.lock.is_none() {
            let rule = "an ephemeral item must be put into a queue in ordered mode: it can have no claim";
            return Err(Error::invalid_input("put", rule).into());
        }
        self.put_as([item], CreateMode::EphemeralSequential).await
    }

    async fn put_as<'a>(
        &self,
        items: impl IntoIterator<Item = &'a T>,
        mode: CreateMode,
    ) -> Result<(), PutError>
    where
        T: 'a,
    {
        let encode = |item| self.codec.encode(item).map_err(PutError::Encode);
        let items = items.into_iter().map(encode).collect::<Result<Vec<_>, _>>()?;
        if items.is_empty() {
            return Err(Error::invalid_input("put", "a batch of 0 items must be at least 1").into());
        }
        let nodes = self.store.items.frames(&items)?;
        self.store.items.put(&nodes, mode).await
    }
}

impl<T> fmt::Debug for Queue<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Queue").field("store", &self.store).finish_non_exhaustive()
    }
}
