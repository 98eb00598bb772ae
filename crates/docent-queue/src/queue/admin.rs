//! Inspection and clearing of a queue.

use super::{PutOptions, Queue};
use crate::error::PeekError;
use crate::layout::{ItemName, QueueLayout, Turns};
use crate::store::{ClaimedItem, Listing, Store, ensure_known_folder};
use crate::telemetry::KIND;
use docent_core::recipe::{ClaimResult, InOperation, Line, claim_all, hand_out, if_exists};
use docent_core::{CreateMode, Error, ErrorKind};
use futures_util::stream::{self, StreamExt, TryStreamExt};
use std::future::Future;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::time::Instant;

/// Maximum number of concurrent deletes of a purge.
const MAX_CONCURRENT: usize = 64;

/// Maximum number of attempts to delete a line that consumers join or leave meanwhile.
const ROUNDS: usize = 8;

/// An item as the listing of its queue shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct QueuedItem {
    /// Name of the item's node.
    pub name: String,
    /// Priority of the item. Items with a lower number are handed out first.
    pub priority: i32,
    /// Earliest time at which the item may be handed out; `None` for an item without a delay.
    pub due: Option<SystemTime>,
    /// Whether the item is claimed: a consumer works on it, or, in Curator's layout, it was given back with a
    /// delay that has not ended. Always false in `ordered` mode, which has no claims.
    pub is_claimed: bool,
}

impl<T: 'static> Queue<T> {
    /// Returns the number of items, including those that consumers work on, as seen by the server to which
    /// this client is connected. Other children of the folder are counted as well.
    ///
    /// # Errors
    /// `NoAuth`, `Timeout`, `Closed`.
    ///
    /// # Cancel safety
    /// This method is cancel safe.
    pub fn len(&self) -> impl Future<Output = Result<usize, Error>> + Send + use<T> {
        let queue = self.clone();
        async move { queue.store.items.length().await.in_operation("len") }
    }

    /// Returns whether the queue has no items, as seen by the server to which this client is connected.
    ///
    /// # Errors
    /// Those of [`len`](Self::len).
    ///
    /// # Cancel safety
    /// This method is cancel safe.
    pub fn is_empty(&self) -> impl Future<Output = Result<bool, Error>> + Send + use<T> {
        let queue = self.clone();
        async move { Ok(queue.len().await.in_operation("is_empty")? == 0) }
    }

    /// Returns the items, ordered by priority and number, as seen by the server to which this client is
    /// connected.
    ///
    /// # Errors
    /// `NoAuth`, `Timeout`, `Closed`.
    ///
    /// # Cancel safety
    /// This method is cancel safe.
    pub fn list(&self) -> impl Future<Output = Result<Vec<QueuedItem>, Error>> + Send + use<T> {
        let queue = self.clone();
        async move {
            let Listing { mut items, claimed, .. } = queue.store.items.list().await.in_operation("list")?;
            items.sort_unstable_by_key(|item| (item.priority, item.number));
            let item = |item: ItemName| QueuedItem {
                is_claimed: claimed.contains(&item.text),
                name: item.text,
                priority: item.priority,
                due: item.due.and_then(|due| UNIX_EPOCH.checked_add(Duration::from_millis(due))),
            };
            Ok(items.into_iter().map(item).collect())
        }
    }

    /// Returns the item that would be handed out next, without removing it. Another consumer may take the
    /// item at any time. In `ordered` mode this is the first item, even while a consumer works on it.
    ///
    /// # Errors
    /// [`PeekError::Undecodable`] if the item cannot be decoded; `NoAuth`, `Timeout`, `Closed`.
    ///
    /// # Cancel safety
    /// This method is cancel safe.
    pub fn peek(&self) -> impl Future<Output = Result<Option<T>, PeekError>> + use<T> {
        let queue = self.clone();
        async move { Box::pin(queue.peek_first()).await.in_operation("peek") }
    }

    async fn peek_first(&self) -> Result<Option<T>, PeekError> {
        let Store { client, paths, skipped, items, lock, .. } = &*self.store;
        let Listing { items, claimed, .. } = items.list().await?;
        let now = Instant::now();
        // In ordered mode no item is skipped.
        let is_skipped = |name: &str| lock.is_none() && skipped.contains(name, now);
        let free = items.into_iter().filter(|item| !claimed.contains(&item.text) && !is_skipped(&item.text));
        for ItemName { text: name, .. } in Turns::at(self.store.time_of_day(), free).ready {
            if let Some(node) = if_exists(client.get(&paths.item(&name)).await)? {
                let decoded = self.decode(&node.data);
                return decoded.map(Some).map_err(|detail| PeekError::Undecodable { item: name, detail });
            }
        }
        Ok(None)
    }

    /// Moves an item to another place, in one step, unless a consumer works on the item. The item is then
    /// behind the items of its new priority, and has its new delay. It keeps its number of deliveries.
    /// Returns false if the item does not exist or is claimed. For an item that was handed out, use
    /// [`Delivery::put_back`](crate::Delivery::put_back).
    ///
    /// # Errors
    /// `InvalidInput` for options in Curator's layout, and in `ordered` mode, in which items have no claims
    /// that show whether a consumer works on them; `Lost` if a consumer whose claim was deleted
    /// by hand ends its delivery meanwhile; `OutcomeUnknown`, `NoAuth`, `Timeout`, `Closed`.
    ///
    /// # Cancel safety
    /// This method is *not* cancel safe: the item may have been moved. In any case the item is in the queue
    /// exactly once.
    pub fn reschedule(
        &self,
        name: &str,
        options: PutOptions,
    ) -> impl Future<Output = Result<bool, Error>> + Send + use<T> {
        let queue = self.clone();
        let name = name.to_owned();
        async move {
            let Store { client, paths, items, .. } = &*queue.store;
            let invalid = |rule: String| Err(Error::invalid_input("reschedule", rule));
            if paths.parse(name.clone()).is_none() {
                return invalid(format!("{name:?} must be the name of an item"));
            }
            if queue.store.lock.is_some() {
                return invalid(
                    "an item of a queue in ordered mode must be moved by its delivery".to_owned(),
                );
            }
            let place = options.place_in(&queue.store)?;
            ensure_known_folder(client, &paths.claims).await.in_operation("reschedule")?;
            let wanted = [paths.claim_request(&name, false)];
            let ClaimResult::All(claims) = claim_all(client, &wanted, &KIND, "reschedule").await? else {
                return Ok(false);
            };
            let Some((hold, Some(node))) = claims.into_iter().next() else { return Ok(false) };
            let own = Some(queue.store.own.note(&name));
            if node.stat.num_children > 0 {
                // An earlier claim was deleted by hand, and its holder may not know that. After this hand-out
                // the servers refuse whatever that holder still sends.
                hand_out(client, &[&hold], "reschedule").await?;
            }
            let claimed = ClaimedItem { hold, name, node, handed_out: false, counted_since: 0, own };
            items.move_to("reschedule", claimed, place).await?;
            queue.store.dispatcher.request_listing();
            Ok(true)
        }
    }

    /// Permanently deletes all current items on which no consumer works, and returns their number. In
    /// `ordered` mode this includes the item on which a consumer works, because it has no claim; its
    /// acknowledgement then fails.
    ///
    /// # Errors
    /// `NoAuth`, `Timeout`, `Closed`, `OutcomeUnknown`: some items may have been deleted.
    ///
    /// # Cancel safety
    /// This method is *not* cancel safe: some items may have been deleted. The purge can be repeated without
    /// harm.
    pub fn purge(&self) -> impl Future<Output = Result<usize, Error>> + Send + use<T> {
        let queue = self.clone();
        async move {
            use ErrorKind::{NoNode, NodeExists, NotEmpty};
            let items = queue.store.items.list().await.in_operation("purge")?.items;
            if !items.is_empty() {
                let claims = &queue.store.paths.claims;
                ensure_known_folder(&queue.store.client, claims).await.in_operation("purge")?;
            }
            let store = &queue.store;
            let delete = |name: String| async move {
                let Store { client, paths, .. } = &**store;
                let (item, claim) = (paths.item(&name), paths.claim(&name));
                // If a consumer claims the item first, the item is kept.
                let delete = client.transaction().create(&claim, "", CreateMode::Ephemeral);
                match delete.delete(&item, None).delete(&claim, None).commit_exactly().await {
                    Ok(_) => Ok(1),
                    // The item is already deleted or claimed.
                    Err(error) if matches!(error.kind(), NoNode | NotEmpty | NodeExists) => Ok(0),
                    Err(error) => Err(error),
                }
            };
            let names = items.into_iter().map(|item| item.text);
            let deleted = stream::iter(names).map(delete).buffer_unordered(MAX_CONCURRENT);
            deleted.try_fold(0, |sum, one| async move { Ok(sum + one) }).await.in_operation("purge")
        }
    }

    /// Deletes the folder of the items if it is empty, and the folders of claims and waiting consumers, so
    /// that all their sequence numbers start at 0 again. Waiting consumers take new places.
    ///
    /// # Errors
    /// `NotEmpty` if the queue has items; `NodeExists` if an item was put meanwhile, in which case not all
    /// numbers were reset; `NoAuth`, `Timeout`, `Closed`.
    ///
    /// # Cancel safety
    /// This method is cancel safe. The reset can be repeated without harm.
    pub fn reset(&self) -> impl Future<Output = Result<(), Error>> + Send + use<T> {
        let queue = self.clone();
        async move {
            let Store { client, paths, items, idle, lock, .. } = &*queue.store;
            client.ensure_absent(&paths.items).await.in_operation("reset")?;
            items.numbers_restart();
            // Names of items may be reused from now on.
            queue.store.dispatcher.request_listing();
            for line in [Some(idle), lock.as_ref()].into_iter().flatten() {
                rotate(line, &paths.items).await.in_operation("reset")?;
            }
            match paths.layout {
                // An item that was put and claimed meanwhile is not an error.
                QueueLayout::Native => match client.ensure_absent(&paths.claims).await {
                    Err(error) if error.kind() == ErrorKind::NotEmpty => Ok(()),
                    result => result.in_operation("reset"),
                },
                // The claims' folder is the lock path, which may contain nodes of other programs.
                QueueLayout::Curator { .. } => Ok(()),
            }
        }
    }
}

/// Deletes a line with all its tickets, which their owners take again. This is one transaction that requires
/// the folder of `items` to be missing, so that no consumer loses a lock under which it works on an item.
async fn rotate(line: &Line, items: &str) -> Result<(), Error> {
    let client = line.client();
    for round in 1.. {
        let Some(children) = if_exists(client.children(line.path()).await)? else { return Ok(()) };
        let tickets = children.names;
        // The create fails if the folder exists.
        let step = client.transaction().create(items, "", CreateMode::Persistent).delete(items, None);
        let step = tickets
            .iter()
            .fold(step, |step, ticket| step.delete(&format!("{}/{ticket}", line.path()), None))
            .delete(line.path(), None);
        match step.commit_exactly().await {
            // A consumer joined or left the line meanwhile.
            Err(error)
                if matches!(error.kind(), ErrorKind::NoNode | ErrorKind::NotEmpty) && round < ROUNDS => {}
            result => return result.map(drop),
        }
    }
    Ok(())
}
