//! Looking at a queue, and clearing it.

use super::{PutOptions, Queue};
use crate::error::PeekError;
use crate::layout::{ItemName, QueueLayout};
use crate::store::{Aside, Backlog, ClaimedItem, Listing, Store, ensure_known_folder};
use crate::telemetry::KIND;
use docent_core::recipe::{ClaimResult, Line, claim_all, hand_out};
use docent_core::{CreateMode, Error, ErrorKind};
use futures_util::stream::{self, StreamExt, TryStreamExt};
use std::future::Future;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Deletes of a purge under way at the same time.
const AT_ONCE: usize = 64;

/// How often a line is deleted again that others join or leave meanwhile.
const ROUNDS: usize = 8;

/// An item as the listing of its queue shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct QueuedItem {
    /// The name of its node.
    pub name: String,
    /// Its priority; lower ones are handed out first.
    pub priority: i32,
    /// Time from which on it may be handed out, for one that was put with a delay.
    pub due: Option<SystemTime>,
    /// True while a consumer works on it, or it was given back with a delay.
    pub is_claimed: bool,
}

impl<T: 'static> Queue<T> {
    /// Number of items, items in work included, at the server this client talks to. Other children of the
    /// folder count.
    ///
    /// # Errors
    /// `NoAuth`, `Timeout`, `Closed`.
    ///
    /// # Cancel safety
    /// This method is cancel safe.
    pub fn len(&self) -> impl Future<Output = Result<usize, Error>> + Send + use<T> {
        let queue = self.clone();
        async move { queue.store.items.length().await }
    }

    /// True when there is no item, at the server this client talks to.
    ///
    /// # Errors
    /// As [`len`](Self::len).
    ///
    /// # Cancel safety
    /// This method is cancel safe.
    pub fn is_empty(&self) -> impl Future<Output = Result<bool, Error>> + Send + use<T> {
        let queue = self.clone();
        async move { Ok(queue.len().await? == 0) }
    }

    /// The items, in the order of their priorities and numbers, at the server this client talks to.
    ///
    /// # Errors
    /// `NoAuth`, `Timeout`, `Closed`.
    ///
    /// # Cancel safety
    /// This method is cancel safe.
    pub fn list(&self) -> impl Future<Output = Result<Vec<QueuedItem>, Error>> + Send + use<T> {
        let queue = self.clone();
        async move {
            let Listing { mut items, claimed, .. } = queue.store.items.list().await?;
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

    /// The item that would be handed out next, which stays in the queue. Somebody else may take it at any
    /// time. In `ordered` mode it is the first, also while it is worked on.
    ///
    /// # Errors
    /// [`PeekError::Undecodable`] when it cannot be decoded; `NoAuth`, `Timeout`, `Closed`.
    ///
    /// # Cancel safety
    /// This method is cancel safe.
    pub fn peek(&self) -> impl Future<Output = Result<Option<T>, PeekError>> + use<T> {
        let queue = self.clone();
        async move { Box::pin(queue.peek_first()).await }
    }

    async fn peek_first(&self) -> Result<Option<T>, PeekError> {
        let Store { client, paths, own, aside, items, lock, .. } = &*self.store;
        let listing = items.list().await?;
        let mut backlog = Backlog::default();
        // In ordered mode no item is passed over.
        let aside = if lock.is_some() { &Aside::default() } else { aside };
        backlog.fill(listing.items, &listing.claimed, own, aside, self.store.time_of_day());
        for name in backlog.first(usize::MAX) {
            match client.get(&paths.item(&name)).await {
                Ok(node) => {
                    let decoded = self.decode(&node.data);
                    return decoded.map(Some).map_err(|detail| PeekError::Undecodable { item: name, detail });
                }
                Err(error) if error.kind() == ErrorKind::NoNode => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(None)
    }

    /// Puts an item that nobody works on at another place, in one step: at the end of those with its new
    /// priority, and with its new delay. Its number of deliveries stays. False when there is no such item, or
    /// somebody has claimed it. For one that was handed out there is
    /// [`Delivery::put_back`](crate::Delivery::put_back).
    ///
    /// # Errors
    /// `InvalidInput` for options in Curator's layout, and in `ordered` mode, where nothing tells whether
    /// somebody works on an item; `Lost` when a holder whose claim was deleted by hand ends the item
    /// meanwhile; `OutcomeUnknown`, `NoAuth`, `Timeout`, `Closed`.
    ///
    /// # Cancel safety
    /// This method is *not* cancel safe: the item may be moved. It is in the queue once in any case.
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
            ensure_known_folder(client, &paths.claims).await?;
            let wanted = [paths.claim_request(&name, false)];
            let ClaimResult::All(claims) = claim_all(client, &wanted, &KIND, "reschedule").await? else {
                return Ok(false);
            };
            let Some((hold, Some(node))) = claims.into_iter().next() else { return Ok(false) };
            let own = Some(queue.store.own.note(&name));
            let name_of = name.clone();
            if node.stat.num_children > 0 {
                // An earlier claim was deleted by hand, and its holder may not know of that. After this the
                // servers refuse what it still sends.
                hand_out(client, &[&hold], "reschedule").await?;
            }
            let claimed = ClaimedItem { hold, name: name_of, node, handed_out: false, counted_since: 0, own };
            let deliveries = claimed.deliveries(paths);
            items.move_to("reschedule", claimed.hold, &name, &claimed.node.data, deliveries, place).await?;
            queue.store.desk.look_again();
            Ok(true)
        }
    }

    /// Deletes all items that are there and nobody works on, for good, and returns how many. In `ordered`
    /// mode that includes the item that is worked on, which has no claim: its acknowledgement fails then.
    ///
    /// # Errors
    /// `NoAuth`, `Timeout`, `Closed`, `OutcomeUnknown`: then some may be deleted.
    ///
    /// # Cancel safety
    /// This method is *not* cancel safe: some may be deleted. Doing it again does no harm.
    pub fn purge(&self) -> impl Future<Output = Result<usize, Error>> + Send + use<T> {
        let queue = self.clone();
        async move {
            use ErrorKind::{NoNode, NodeExists, NotEmpty};
            let items = queue.store.items.list().await?.items;
            if !items.is_empty() {
                ensure_known_folder(&queue.store.client, &queue.store.paths.claims).await?;
            }
            let store = &queue.store;
            let delete = |name: String| async move {
                let Store { client, paths, .. } = &**store;
                let (item, claim) = (paths.item(&name), paths.claim(&name));
                // A consumer that claims it first keeps it.
                let delete = client.transaction().create(&claim, "", CreateMode::Ephemeral);
                match delete.delete(&item, None).delete(&claim, None).commit_exactly().await {
                    Ok(_) => Ok(1),
                    // It is gone already, or claimed.
                    Err(error) if matches!(error.kind(), NoNode | NotEmpty | NodeExists) => Ok(0),
                    Err(error) => Err(error),
                }
            };
            let names = items.into_iter().map(|item| item.text);
            let deleted = stream::iter(names).map(delete).buffer_unordered(AT_ONCE);
            deleted.try_fold(0, |sum, one| async move { Ok(sum + one) }).await
        }
    }

    /// Deletes the folder of the items if there is none, and the folders of claims and waiting consumers, so
    /// that all their numbers begin at 0 again. Consumers that wait take new places.
    ///
    /// # Errors
    /// `NotEmpty` when there are items; `NodeExists` when one was put meanwhile, and not all numbers begin
    /// anew; `NoAuth`, `Timeout`, `Closed`.
    ///
    /// # Cancel safety
    /// This method is cancel safe: doing it again does no harm.
    pub fn reset(&self) -> impl Future<Output = Result<(), Error>> + Send + use<T> {
        let queue = self.clone();
        async move {
            let Store { client, paths, items, idle, lock, .. } = &*queue.store;
            client.ensure_absent(&paths.items).await?;
            items.numbers_begin_anew();
            // Names of items are used again.
            queue.store.desk.look_again();
            for line in [Some(idle), lock.as_ref()].into_iter().flatten() {
                rotate(line, &paths.items).await?;
            }
            match paths.layout {
                // An item that was put and claimed since is no reason to fail.
                QueueLayout::Native => match client.ensure_absent(&paths.claims).await {
                    Err(error) if error.kind() == ErrorKind::NotEmpty => Ok(()),
                    result => result,
                },
                // It is the lock path, below which others are.
                QueueLayout::Curator { .. } => Ok(()),
            }
        }
    }
}

/// Deletes a line with all its tickets, which are taken anew, in one step; while there is no folder of
/// `items`, so that nobody loses a lock under which an item is worked on.
async fn rotate(line: &Line, items: &str) -> Result<(), Error> {
    let client = line.client();
    for round in 1.. {
        let tickets = match client.children(line.path()).await {
            Ok(line) => line.names,
            Err(error) if error.kind() == ErrorKind::NoNode => return Ok(()),
            Err(error) => return Err(error),
        };
        // The create fails where the folder is there.
        let step = client.transaction().create(items, "", CreateMode::Persistent).delete(items, None);
        let step = tickets
            .iter()
            .fold(step, |step, ticket| step.delete(&format!("{}/{ticket}", line.path()), None))
            .delete(line.path(), None);
        match step.commit_exactly().await {
            // Somebody came or left.
            Err(error)
                if matches!(error.kind(), ErrorKind::NoNode | ErrorKind::NotEmpty) && round < ROUNDS => {}
            result => return result.map(drop),
        }
    }
    Ok(())
}
