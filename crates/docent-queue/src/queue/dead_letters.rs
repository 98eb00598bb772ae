use super::Queue;
use crate::consumer::LETTER;
use crate::error::PutError;
use crate::layout::{DeadReason, Head, in_order};
use crate::store::{Place, Store, ensure_known_folder};
use bytes::Bytes;
use docent_core::recipe::debug_handle;
use docent_core::{CreateMode, Error, ErrorKind};
use futures_util::stream::{self, StreamExt, TryStreamExt};
use std::fmt;
use std::future::Future;
use std::time::SystemTime;

/// Reads and deletes under way at the same time.
const AT_ONCE: usize = 64;

/// An item that nobody gets any more.
#[derive(Clone)]
#[non_exhaustive]
pub struct DeadLetter {
    /// The name of its node.
    pub name: String,
    /// Reason for which it is here.
    pub reason: DeadReason,
    /// More about that, at most 500 bytes.
    pub detail: String,
    /// The name that its node had in the queue.
    pub item: String,
    /// Number of times it was handed out, where that is counted.
    pub deliveries: Option<u32>,
    /// When it was moved here, by the server's clock.
    pub since: SystemTime,
    /// The data of its node as it was in the queue.
    pub data: Bytes,
}

// The data of the queue is not printed.
impl fmt::Debug for DeadLetter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DeadLetter")
            .field("name", &self.name)
            .field("reason", &self.reason)
            .field("detail", &self.detail)
            .field("item", &self.item)
            .field("deliveries", &self.deliveries)
            .field("bytes", &self.data.len())
            .finish_non_exhaustive()
    }
}

/// The items of a [`Queue`](crate::Queue) that were handed out too often, rejected, or could not be decoded.
/// They stay until somebody looks after them.
pub struct DeadLetters<T> {
    queue: Queue<T>,
}

impl<T> Clone for DeadLetters<T> {
    fn clone(&self) -> Self {
        Self { queue: self.queue.clone() }
    }
}

impl<T> fmt::Debug for DeadLetters<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        debug_handle(f, "DeadLetters", &self.queue.store.path, &self.queue.store.client)
            .finish_non_exhaustive()
    }
}

impl<T: 'static> DeadLetters<T> {
    pub(crate) fn new(queue: Queue<T>) -> Self {
        Self { queue }
    }

    fn store(&self) -> &Store {
        &self.queue.store
    }

    /// Decodes the item of a letter.
    ///
    /// # Errors
    /// The reason for which it cannot be decoded, without the item's data.
    pub fn decode(&self, letter: &DeadLetter) -> Result<T, String> {
        self.queue.decode(&letter.data)
    }

    /// All of them, the oldest first. Children of the folder whose names are not those of letters are left
    /// out; a letter that cannot be read is listed with [`DeadReason::Other`].
    ///
    /// # Errors
    /// `NoAuth`, `Timeout`, `Closed`.
    ///
    /// # Cancel safety
    /// This method is cancel safe.
    pub fn list(&self) -> impl Future<Output = Result<Vec<DeadLetter>, Error>> + Send + use<T> {
        let letters = self.clone();
        async move {
            let names = letters.names().await?;
            let letters = stream::iter(names).map(|name| letters.read(name)).buffered(AT_ONCE);
            letters.try_filter_map(|letter| async { Ok(letter) }).try_collect().await
        }
    }

    /// Number of dead letters.
    ///
    /// # Errors
    /// `NoAuth`, `Timeout`, `Closed`.
    ///
    /// # Cancel safety
    /// This method is cancel safe.
    pub fn len(&self) -> impl Future<Output = Result<usize, Error>> + Send + use<T> {
        let letters = self.clone();
        async move { Ok(letters.names().await?.len()) }
    }

    /// True when there is none.
    ///
    /// # Errors
    /// As [`len`](Self::len).
    ///
    /// # Cancel safety
    /// This method is cancel safe.
    pub fn is_empty(&self) -> impl Future<Output = Result<bool, Error>> + Send + use<T> {
        let letters = self.clone();
        async move { Ok(letters.len().await? == 0) }
    }

    /// Puts an item back into the queue, in one step and exactly once: at its end, as one that was never
    /// handed out. The capacity is not looked at.
    ///
    /// # Errors
    /// `NoNode` when it is not among the dead letters any more; `OutcomeUnknown`, `NoAuth`, `Timeout`,
    /// `Closed`.
    ///
    /// # Cancel safety
    /// This method is *not* cancel safe: the item may be in the queue again.
    pub fn requeue(&self, letter: &DeadLetter) -> impl Future<Output = Result<(), Error>> + Send + use<T> {
        let letters = self.clone();
        let letter = letter.clone();
        async move {
            let paths = &letters.store().paths;
            let framed = paths.unframe(&letter.data).ok().and_then(|(_, item)| paths.frame(&item, 0));
            letters.replace(&letter, framed.unwrap_or_else(|| letter.data.clone())).await
        }
    }

    /// As [`requeue`](Self::requeue), with another `item` in the place of the letter's: one that was mended.
    ///
    /// # Errors
    /// As [`requeue`](Self::requeue), and those of encoding the item.
    ///
    /// # Cancel safety
    /// As [`requeue`](Self::requeue).
    pub fn requeue_as(
        &self,
        letter: &DeadLetter,
        item: &T,
    ) -> impl Future<Output = Result<(), PutError>> + Send + use<T> {
        let (letters, letter, node) = (self.clone(), letter.clone(), self.queue.encode(item));
        async move { Ok(letters.replace(&letter, node?).await?) }
    }

    /// Deletes a letter and puts an item with this data into the queue.
    async fn replace(&self, letter: &DeadLetter, node: Bytes) -> Result<(), Error> {
        let Store { client, paths, items, .. } = self.store();
        ensure_known_folder(client, &paths.items).await?;
        let delete = client.transaction().delete(&self.path(&letter.name), None);
        let requeue = items.add(delete, &[node], Place::default(), CreateMode::PersistentSequential);
        requeue.commit_exactly().await.map(drop)
    }

    /// Deletes one for good.
    ///
    /// # Errors
    /// `NoAuth`, `Timeout`, `Closed`.
    ///
    /// # Cancel safety
    /// This method is cancel safe: doing it again does no harm.
    pub fn delete(&self, letter: &DeadLetter) -> impl Future<Output = Result<(), Error>> + Send + use<T> {
        let letters = self.clone();
        let letter = letter.clone();
        async move { letters.store().client.ensure_absent(&letters.path(&letter.name)).await }
    }

    /// Deletes all that are there now, for good, and returns how many.
    ///
    /// # Errors
    /// As [`delete`](Self::delete): then some may be deleted.
    ///
    /// # Cancel safety
    /// This method is *not* cancel safe: some may be deleted. Doing it again does no harm.
    pub fn purge(&self) -> impl Future<Output = Result<usize, Error>> + Send + use<T> {
        let letters = self.clone();
        async move {
            let names = letters.names().await?;
            let count = names.len();
            stream::iter(names)
                .map(|name| {
                    let path = letters.path(&name);
                    let client = &letters.store().client;
                    async move { client.ensure_absent(&path).await }
                })
                .buffer_unordered(AT_ONCE)
                .try_collect::<()>()
                .await?;
            Ok(count)
        }
    }

    fn path(&self, name: &str) -> String {
        format!("{}/{name}", self.store().paths.dead)
    }

    async fn names(&self) -> Result<Vec<String>, Error> {
        match self.store().client.children(&self.store().paths.dead).await {
            Ok(children) => Ok(in_order(children.names, LETTER)),
            Err(error) if error.kind() == ErrorKind::NoNode => Ok(Vec::new()),
            Err(error) => Err(error),
        }
    }

    async fn read(&self, name: String) -> Result<Option<DeadLetter>, Error> {
        let node = match self.store().client.get(&self.path(&name)).await {
            Ok(node) => node,
            Err(error) if error.kind() == ErrorKind::NoNode => return Ok(None),
            Err(error) => return Err(error),
        };
        let (Head { reason, detail, deliveries, item }, data) = Head::read(&node.data);
        Ok(Some(DeadLetter { name, reason, detail, item, deliveries, since: node.stat.created, data }))
    }
}
