use crate::consumer::ClaimedItem;
use crate::layout::in_order;
use crate::store::{Store, ensure_folder};
use bytes::Bytes;
use docent_core::recipe::Hold;
use docent_core::{CreateMode, Error, ErrorKind};
use futures_util::stream::{self, StreamExt, TryStreamExt};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::SystemTime;

/// The number of a letter comes behind this.
const PREFIX: &str = "letter-";
const VERSION: u32 = 1;
/// Longest text that is kept about a reason, in bytes.
const DETAIL: usize = 500;
/// Reads and deletes under way at the same time.
const AT_ONCE: usize = 64;

/// Reason for which an item is a dead letter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum DeadReason {
    /// It was handed out as often as is allowed, and never acknowledged.
    TooManyDeliveries,
    /// It could not be decoded.
    Undecodable,
}

impl fmt::Display for DeadReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::TooManyDeliveries => "it was handed out too often",
            Self::Undecodable => "it could not be decoded",
        })
    }
}

/// Header before an item's bytes in a dead letter, as one line of JSON.
#[derive(Serialize, Deserialize)]
struct Head {
    version: u32,
    reason: DeadReason,
    detail: String,
    deliveries: Option<u32>,
    item: String,
}

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
    /// Number of its claims, the one at which it was moved here included, where claims are counted.
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

/// The items of a [`Queue`](crate::Queue) that were handed out too often, or could not be decoded. They stay
/// until somebody looks after them.
#[derive(Debug, Clone)]
pub struct DeadLetters {
    store: Arc<Store>,
}

impl DeadLetters {
    pub(crate) fn new(store: &Arc<Store>) -> Self {
        Self { store: Arc::clone(store) }
    }

    /// All of them, the oldest first. Children of the folder that are none are left out.
    ///
    /// # Errors
    /// `NoAuth`, `Timeout`, `Closed`.
    ///
    /// # Cancel safety
    /// This method is cancel safe.
    pub async fn list(&self) -> Result<Vec<DeadLetter>, Error> {
        let names = self.names().await?;
        let letters = stream::iter(names).map(|name| self.read(name)).buffered(AT_ONCE);
        letters.try_filter_map(|letter| async { Ok(letter) }).try_collect().await
    }

    /// Number of dead letters.
    ///
    /// # Errors
    /// `NoAuth`, `Timeout`, `Closed`.
    ///
    /// # Cancel safety
    /// This method is cancel safe.
    pub async fn len(&self) -> Result<usize, Error> {
        Ok(self.names().await?.len())
    }

    /// True when there is none.
    ///
    /// # Errors
    /// As [`len`](Self::len).
    ///
    /// # Cancel safety
    /// This method is cancel safe.
    pub async fn is_empty(&self) -> Result<bool, Error> {
        Ok(self.len().await? == 0)
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
    pub async fn requeue(&self, letter: &DeadLetter) -> Result<(), Error> {
        let Store { client, paths, .. } = &*self.store;
        if client.exists(&paths.items).await?.is_none() {
            ensure_folder(client, &paths.items).await?;
        }
        let requeue = client.transaction().delete(&self.path(&letter.name), None).create(
            &paths.new_item(),
            letter.data.clone(),
            CreateMode::PersistentSequential,
        );
        requeue.commit_exactly().await.map(drop)
    }

    /// Deletes one for good.
    ///
    /// # Errors
    /// `NoAuth`, `Timeout`, `Closed`.
    ///
    /// # Cancel safety
    /// This method is cancel safe: doing it again does no harm.
    pub async fn delete(&self, letter: &DeadLetter) -> Result<(), Error> {
        self.store.client.ensure_absent(&self.path(&letter.name)).await
    }

    /// Deletes all that are there now, for good, and returns how many.
    ///
    /// # Errors
    /// As [`delete`](Self::delete): then some may be deleted.
    ///
    /// # Cancel safety
    /// This method is *not* cancel safe: some may be deleted. Doing it again does no harm.
    pub async fn purge(&self) -> Result<usize, Error> {
        let names = self.names().await?;
        let count = names.len();
        stream::iter(names)
            .map(|name| async move { self.store.client.ensure_absent(&self.path(&name)).await })
            .buffer_unordered(AT_ONCE)
            .try_collect::<()>()
            .await?;
        Ok(count)
    }

    fn path(&self, name: &str) -> String {
        format!("{}/{name}", self.store.paths.dead)
    }

    async fn names(&self) -> Result<Vec<String>, Error> {
        match self.store.client.children(&self.store.paths.dead).await {
            Ok(children) => Ok(in_order(children.names, PREFIX)),
            Err(error) if error.kind() == ErrorKind::NoNode => Ok(Vec::new()),
            Err(error) => Err(error),
        }
    }

    /// `None` when it is gone, or none of ours.
    async fn read(&self, name: String) -> Result<Option<DeadLetter>, Error> {
        let node = match self.store.client.get(&self.path(&name)).await {
            Ok(node) => node,
            Err(error) if error.kind() == ErrorKind::NoNode => return Ok(None),
            Err(error) => return Err(error),
        };
        let Some(end) = node.data.iter().position(|byte| *byte == b'\n') else { return Ok(None) };
        let Ok(head) = serde_json::from_slice::<Head>(&node.data[..end]) else { return Ok(None) };
        let Head { reason, detail, deliveries, item, .. } = head;
        let (since, data) = (node.stat.created, node.data.slice(end + 1..));
        Ok(Some(DeadLetter { name, reason, detail, item, deliveries, since, data }))
    }
}

/// Moves an item to the dead letters, in one step and exactly once. Where that is refused it is quarantined,
/// so that it blocks nobody here.
pub(crate) async fn bury(
    store: &Store,
    taken: ClaimedItem,
    reason: DeadReason,
    detail: impl fmt::Display,
) -> Result<(), Error> {
    use ErrorKind::{AuthFailed, Closed, EnsembleRolledBack};
    let ClaimedItem { guard, mine, node, deliveries } = taken;
    let detail = shortened(detail.to_string());
    tracing::warn!(path = %store.path, item = %mine.name, %reason, detail, "item goes to the dead letters");
    let head = Head { version: VERSION, reason, detail, deliveries, item: mine.name.clone() };
    let mut letter = serde_json::to_vec(&head)
        .map_err(|error| Error::invalid_input("bury", format!("dead letter: {error}")))?;
    letter.push(b'\n');
    letter.extend_from_slice(&node);
    match post(store, guard, mine.item(), letter).await {
        Ok(()) => mine.done(),
        Err(error) if error.kind() == ErrorKind::NoNode => store.has_dead.store(false, Ordering::Release),
        // It is handed out again, and comes here again.
        Err(error) if error.is_lost() || error.is_retryable() => {}
        Err(error) if error.kind() == ErrorKind::OutcomeUnknown => {}
        // This is not about the item.
        Err(error) if matches!(error.kind(), Closed | AuthFailed | EnsembleRolledBack) => {
            return Err(error);
        }
        Err(error) => {
            tracing::error!(path = %store.path, item = %mine.name, %error, "item cannot go to the dead letters");
            store.local.quarantine(&mine.name);
        }
    }
    Ok(())
}

async fn post(store: &Store, guard: Hold, item: String, letter: Vec<u8>) -> Result<(), Error> {
    if !store.has_dead.load(Ordering::Acquire) {
        ensure_folder(&store.client, &store.paths.dead).await?;
        store.has_dead.store(true, Ordering::Release);
    }
    let path = format!("{}/{PREFIX}", store.paths.dead);
    let write = store.client.transaction().create(&path, letter, CreateMode::PersistentSequential);
    guard.end_with(&[item], write).await.map(drop)
}

/// At most [`DETAIL`] bytes of a text.
fn shortened(mut text: String) -> String {
    if let Some(end) = (0..=DETAIL).rev().find(|end| text.is_char_boundary(*end)) {
        text.truncate(end);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_text_is_cut_between_characters() {
        assert_eq!(shortened("a".to_owned()), "a");
        assert_eq!(shortened("a".repeat(DETAIL + 9)).len(), DETAIL);
        assert_eq!(shortened(format!("b{}", "ä".repeat(DETAIL))).len(), DETAIL - 1);
    }
}
