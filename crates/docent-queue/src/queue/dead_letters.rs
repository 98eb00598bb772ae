use super::Queue;
use crate::consumer::LETTER;
use crate::error::PutError;
use crate::layout::{DeadReason, Head, in_order};
use crate::store::{ItemPlace, Store, ensure_known_folder};
use bytes::Bytes;
use docent_core::recipe::{InOperation, debug_handle, if_exists};
use docent_core::{CreateMode, Error};
use futures_util::stream::{self, StreamExt, TryStreamExt};
use std::fmt;
use std::future::Future;
use std::time::SystemTime;

/// Maximum number of concurrent reads or deletes.
const MAX_CONCURRENT: usize = 64;

/// An item that is no longer handed out.
#[derive(Clone)]
#[non_exhaustive]
pub struct DeadLetter {
    /// Name of the dead letter's node.
    pub name: String,
    /// Reason for which the item became a dead letter.
    pub reason: DeadReason,
    /// Details of the reason, at most 500 bytes.
    pub detail: String,
    /// Name that the item's node had in the queue.
    pub item: String,
    /// Number of deliveries of the item; `None` if deliveries are not counted.
    pub deliveries: Option<u32>,
    /// Time at which the item was moved, by the server's clock.
    pub since: SystemTime,
    /// Data of the item's node, as in the queue.
    pub data: Bytes,
}

// Does not print the data, which may be confidential.
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
/// They stay until they are put back into the queue or deleted.
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

    /// Decodes the item of a dead letter.
    ///
    /// # Errors
    /// The reason for which the item cannot be decoded, without the item's data.
    pub fn decode(&self, letter: &DeadLetter) -> Result<T, String> {
        self.queue.decode(&letter.data)
    }

    /// Returns all dead letters, the oldest first. Children of the folder that are not named like dead
    /// letters are skipped. A letter that cannot be read is listed with [`DeadReason::Other`].
    ///
    /// # Errors
    /// `NoAuth`, `Timeout`, `Closed`.
    ///
    /// # Cancel safety
    /// This method is cancel safe.
    pub fn list(&self) -> impl Future<Output = Result<Vec<DeadLetter>, Error>> + Send + use<T> {
        let letters = self.clone();
        async move {
            let names = letters.names().await.in_operation("list")?;
            let letters = stream::iter(names).map(|name| letters.read(name)).buffered(MAX_CONCURRENT);
            letters.try_filter_map(|letter| async { Ok(letter) }).try_collect().await.in_operation("list")
        }
    }

    /// Returns the dead letter with this name, or `None` if there is none.
    ///
    /// # Errors
    /// `NoAuth`, `Timeout`, `Closed`.
    ///
    /// # Cancel safety
    /// This method is cancel safe.
    pub fn get(&self, name: &str) -> impl Future<Output = Result<Option<DeadLetter>, Error>> + Send + use<T> {
        let (letters, name) = (self.clone(), name.to_owned());
        async move {
            let is_letter = !in_order([name.clone()], LETTER).is_empty();
            let read = if is_letter { letters.read(name).await } else { Ok(None) };
            read.in_operation("get")
        }
    }

    /// Returns the number of dead letters.
    ///
    /// # Errors
    /// `NoAuth`, `Timeout`, `Closed`.
    ///
    /// # Cancel safety
    /// This method is cancel safe.
    pub fn len(&self) -> impl Future<Output = Result<usize, Error>> + Send + use<T> {
        let letters = self.clone();
        async move { Ok(letters.names().await.in_operation("len")?.len()) }
    }

    /// Returns whether there are no dead letters.
    ///
    /// # Errors
    /// Those of [`len`](Self::len).
    ///
    /// # Cancel safety
    /// This method is cancel safe.
    pub fn is_empty(&self) -> impl Future<Output = Result<bool, Error>> + Send + use<T> {
        let letters = self.clone();
        async move { Ok(letters.len().await.in_operation("is_empty")? == 0) }
    }

    /// Puts an item back into the queue, in one step and exactly once. The item goes to the end of the queue
    /// and counts as never handed out. The capacity is not checked.
    ///
    /// # Errors
    /// `NoNode` if the letter no longer exists; `OutcomeUnknown`, `NoAuth`, `Timeout`, `Closed`.
    ///
    /// # Cancel safety
    /// This method is *not* cancel safe: the item may be in the queue again.
    pub fn requeue(&self, letter: &DeadLetter) -> impl Future<Output = Result<(), Error>> + Send + use<T> {
        let letters = self.clone();
        let letter = letter.clone();
        async move {
            let paths = &letters.store().paths;
            let uncounted = paths.with_base(&letter.data, |_| 0);
            let replaced = letters.replace(&letter, uncounted.unwrap_or_else(|| letter.data.clone())).await;
            replaced.in_operation("requeue")
        }
    }

    /// Puts `item` into the queue in place of the letter's item, like [`requeue`](Self::requeue). Use this to
    /// requeue a repaired item.
    ///
    /// # Errors
    /// Those of [`requeue`](Self::requeue), and those of encoding the item.
    ///
    /// # Cancel safety
    /// This method is *not* cancel safe: the item may be in the queue.
    pub fn requeue_as(
        &self,
        letter: &DeadLetter,
        item: &T,
    ) -> impl Future<Output = Result<(), PutError>> + Send + use<T> {
        let (letters, letter, node) = (self.clone(), letter.clone(), self.queue.encode(item));
        async move { Ok(letters.replace(&letter, node?).await.in_operation("requeue")?) }
    }

    /// Deletes a letter and puts an item with this data into the queue.
    async fn replace(&self, letter: &DeadLetter, node: Bytes) -> Result<(), Error> {
        let Store { client, paths, items, .. } = self.store();
        ensure_known_folder(client, &paths.items).await?;
        let delete = client.transaction().delete(&self.path(&letter.name), None);
        let requeue = items.add(delete, &[node], ItemPlace::default(), CreateMode::PersistentSequential);
        requeue.commit_exactly().await.map(drop)
    }

    /// Permanently deletes a dead letter.
    ///
    /// # Errors
    /// `NoAuth`, `Timeout`, `Closed`.
    ///
    /// # Cancel safety
    /// This method is cancel safe. The deletion can be repeated without harm.
    pub fn delete(&self, letter: &DeadLetter) -> impl Future<Output = Result<(), Error>> + Send + use<T> {
        let letters = self.clone();
        let letter = letter.clone();
        async move {
            let deleted = letters.store().client.ensure_absent(&letters.path(&letter.name)).await;
            deleted.in_operation("delete")
        }
    }

    /// Permanently deletes all current dead letters, and returns their number.
    ///
    /// # Errors
    /// Those of [`delete`](Self::delete): some letters may have been deleted.
    ///
    /// # Cancel safety
    /// This method is *not* cancel safe: some letters may have been deleted. The purge can be repeated
    /// without harm.
    pub fn purge(&self) -> impl Future<Output = Result<usize, Error>> + Send + use<T> {
        let letters = self.clone();
        async move {
            let names = letters.names().await.in_operation("purge")?;
            let count = names.len();
            stream::iter(names)
                .map(|name| {
                    let path = letters.path(&name);
                    let client = &letters.store().client;
                    async move { client.ensure_absent(&path).await.in_operation("purge") }
                })
                .buffer_unordered(MAX_CONCURRENT)
                .try_collect::<()>()
                .await?;
            Ok(count)
        }
    }

    fn path(&self, name: &str) -> String {
        format!("{}/{name}", self.store().paths.dead)
    }

    async fn names(&self) -> Result<Vec<String>, Error> {
        let children = if_exists(self.store().client.children(&self.store().paths.dead).await)?;
        Ok(children.map_or_else(Vec::new, |children| in_order(children.names, LETTER)))
    }

    async fn read(&self, name: String) -> Result<Option<DeadLetter>, Error> {
        let Some(node) = if_exists(self.store().client.get(&self.path(&name)).await)? else {
            return Ok(None);
        };
        let (Head { reason, detail, deliveries, item }, data) = Head::read(&node.data);
        Ok(Some(DeadLetter { name, reason, detail, item, deliveries, since: node.stat.created, data }))
    }
}
