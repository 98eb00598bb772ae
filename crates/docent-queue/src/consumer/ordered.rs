//! One consumer at a time: acquire the lock, take the first item, delete it after success.

use super::changes::Sign;
use super::idle::Idle;
use super::start;
use crate::layout::ItemName;
use crate::store::{ClaimedItem, Listing, Offer, Prospect, Store};
use bytes::Bytes;
use docent_core::recipe::{Hold, Line, Stage, WaitError, full_path, if_exists, spawn, stage_reached};
use docent_core::{Error, ErrorKind, Node, planted};
use futures_util::StreamExt;
use std::collections::HashSet;
use std::sync::Arc;
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep_until};

/// Returns the first item, under the lock; waits for both. Returns `None` if the call was not polled in time:
/// see [`for_call`].
pub(crate) async fn take_locked(store: &Arc<Store>, lock: &Line) -> Result<Option<ClaimedItem>, Error> {
    let (task, lock) = (Arc::clone(store), lock.clone());
    for_call(store, async move {
        loop {
            let hold = lock.acquire(None).await?;
            match first_under(&task, &hold).await? {
                First::Items(names) => match hand_over(&task, hold, names).await? {
                    None => {}
                    offer => return Ok(offer),
                },
                First::Refused(due) => {
                    // Another consumer may be able to decode the item. Until it is done, no consumer may take
                    // the next item.
                    drop(hold);
                    until_acceptable(&task, due).await?;
                }
                First::Lost => {}
            }
        }
    })
    .await
}

/// Returns the first item, if no other consumer has the lock and this process does not leave that item to
/// others.
pub(crate) async fn try_take_locked(store: &Arc<Store>, lock: &Line) -> Result<Option<ClaimedItem>, Error> {
    let (task, lock) = (Arc::clone(store), lock.clone());
    for_call(store, async move {
        loop {
            if !lock.ahead(None).await?.is_empty() {
                return Ok(None);
            }
            let hold = match lock.take_ticket(None).await?.try_now().await {
                Ok(Some(hold)) => hold,
                Ok(None) => return Ok(None),
                Err(WaitError::Core(error)) => return Err(error),
                Err(_) => continue,
            };
            let listing = task.items.list().await?;
            let names = acceptable(&task, task.turns(&listing).ready);
            return if names.is_empty() { Ok(None) } else { hand_over(&task, hold, names).await };
        }
    })
    .await
}

/// Takes an item for a call in a separate task. If the call is dropped, the task ends. If the call is not
/// polled for long, the lock is held no longer than the offer to the call lasts, and the call finds nothing.
async fn for_call(
    store: &Arc<Store>,
    taking: impl Future<Output = Result<Option<Offer>, Error>> + Send + 'static,
) -> Result<Option<ClaimedItem>, Error> {
    let (mut sender, receiver) = oneshot::channel();
    let task = async move {
        let taken = tokio::select! {
            biased;
            () = sender.closed() => return,
            taken = taking => taken,
        };
        // If no call receives the offer, its drop leaves the item to the claiming task.
        drop(sender.send(taken));
    };
    spawn(&store.client, task);
    match receiver.await {
        Ok(taken) => Ok(taken?.and_then(|offer| offer.take().pop())),
        Err(_) => Err(Error::closed("take", &store.path)),
    }
}

/// Outcome of the wait for the first item.
enum First {
    /// Candidates in their order: the first one that still exists is the first item.
    Items(Vec<String>),
    /// The first item is one that this process leaves to others. Contains the time at which a delayed item
    /// may become the first.
    Refused(Option<Instant>),
    /// The lock was lost, or the client is being closed, which the next attempt reports.
    Lost,
}

/// Waits under the lock until there is an item.
async fn first_under(store: &Store, hold: &Hold) -> Result<First, Error> {
    let mut folder = store.client.watch_children(&store.paths.items)?;
    let mut listing = Listing { folder: 0, items: Vec::new(), claimed: HashSet::new() };
    loop {
        store.note(&listing);
        let turns = store.turns(&listing);
        let (is_empty, next) = (turns.ready.is_empty(), turns.next.map(|due| store.check_at(due)));
        let names = acceptable(store, turns.ready);
        if !names.is_empty() {
            return Ok(First::Items(names));
        }
        if !is_empty {
            return Ok(First::Refused(next));
        }
        tokio::select! {
            listed = folder.next() => {
                // The stream ends with the client, and `acquire` reports the end of the client.
                let Some(listed) = listed else { return Ok(First::Lost) };
                listing = store.items.listing(listed?, HashSet::new());
            }
            () = sleep_until(next.unwrap_or_else(Instant::now)), if next.is_some() => {}
            () = stage_reached(&store.client, Stage::Drain) => {
                return Err(Error::closed("take", &store.path));
            }
            reason = hold.lost() => {
                // Event: A consumer lost the lock of an ordered queue while it waited for an item; the field
                // `reason` says why. It acquires the lock again.
                tracing::debug!(target: "docent::queue", client = %store.client.label(), path = %full_path(&store.client, &store.path), %reason, "lost the queue's lock while waiting for an item; acquiring the lock again");
                return Ok(First::Lost);
            }
        }
    }
}

/// Waits, without the lock, until the first item is not left to other consumers.
async fn until_acceptable(store: &Arc<Store>, mut due: Option<Instant>) -> Result<(), Error> {
    let mut idle = Idle::default();
    loop {
        let retry_at = store.skipped.next(Instant::now()).into_iter().chain(due).min();
        tokio::select! {
            sign = idle.sign(store, None) => match sign? {
                Sign::Listed(listing) if matches!(store.prospect(&listing, false), Prospect::Refused(_)) => {
                    due = store.turns(&listing).next.map(|due| store.check_at(due));
                }
                // If the client is closed, the next attempt reports it.
                Sign::Listed(_) | Sign::Due | Sign::Closed => return Ok(()),
            },
            // It is time for this process to try the item again.
            () = sleep_until(retry_at.unwrap_or_else(Instant::now)), if retry_at.is_some() => return Ok(()),
            () = stage_reached(&store.client, Stage::Drain) => {
                return Err(Error::closed("take", &store.path));
            }
        }
    }
}

/// Returns the first of the `ready` items, up to an item that this process leaves to other consumers: no item
/// may be handed out before that one.
fn acceptable(store: &Store, ready: Vec<ItemName>) -> Vec<String> {
    let now = Instant::now();
    let names = ready.into_iter().map(|item| item.text);
    if planted!(SecondBeforeFirst) {
        return names.filter(|name| !store.skipped.contains(name, now)).collect();
    }
    names.take_while(|name| !store.skipped.contains(name, now)).collect()
}

/// Counts a delivery of the first of `names` that exists. Returns `None` if none exists or the lock was lost.
///
/// # Cancel safety
/// Cancel safe: a delivery that was counted for a dropped call is uncounted again.
async fn hand_over(store: &Arc<Store>, hold: Hold, names: Vec<String>) -> Result<Option<Offer>, Error> {
    let (sender, receiver) = oneshot::channel();
    let counting = Arc::clone(store);
    let count = async move {
        let counted = count_first(&counting, hold, names).await;
        let offer = counted.map(|item| item.map(|item| Offer::new(&counting, vec![item])));
        if let Ok(Some(_)) = &offer {
            // If no call receives the offer, its drop leaves the item to the claiming task.
            start(&counting);
        }
        drop(sender.send(offer));
    };
    spawn(&store.client, count);
    match receiver.await {
        Ok(counted) => counted,
        Err(_) => Err(Error::closed("take", &store.path)),
    }
}

/// Counts a delivery of the first of `names` that exists. The count is in the item's data, because an
/// ephemeral item cannot have a child.
async fn count_first(
    store: &Arc<Store>,
    hold: Hold,
    names: Vec<String>,
) -> Result<Option<ClaimedItem>, Error> {
    for name in names {
        loop {
            let path = store.paths.item(&name);
            let Some(node) = if_exists(store.client.get(&path).await)? else { break };
            let counted = store.paths.with_base(&node.data, |base| base.wrapping_add(1));
            let handed_out = counted.is_some();
            match count(&hold, &path, node, counted).await {
                Ok(node) => {
                    let own = None;
                    return Ok(Some(ClaimedItem { hold, name, node, handed_out, counted_since: 0, own }));
                }
                Err(error) if error.kind() == ErrorKind::NoNode => break,
                Err(error) if error.kind() == ErrorKind::BadVersion => {}
                Err(error) if error.is_lost() => return Ok(None),
                Err(error) => return Err(error),
            }
        }
    }
    Ok(None)
}

/// Sets the data of a node, and returns the node with its new data. Without data, only verifies the lock.
async fn count(hold: &Hold, path: &str, mut node: Node, data: Option<Bytes>) -> Result<Node, Error> {
    let Some(data) = data else {
        hold.verify().await?;
        return Ok(node);
    };
    let count = hold.transaction().set(path, data.clone(), node.stat.version);
    // An exact write: after a lost reply it must be certain whether this delivery was counted (decision 11).
    count.commit_exactly().await?;
    node.data = data;
    node.stat.version = node.stat.version.wrapping_add(1);
    Ok(node)
}
