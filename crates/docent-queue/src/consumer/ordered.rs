//! One consumer at a time: lock, take the smallest, delete it after success.

use super::changes::Sign;
use super::idle::Idle;
use super::start;
use crate::store::{Aside, Backlog, ClaimedItem, Listing, Offer, Prospect, Store};
use bytes::Bytes;
use docent_core::recipe::{Hold, Line, Stage, WaitError, spawn, stage_reached};
use docent_core::{Error, ErrorKind, Node, planted};
use futures_util::StreamExt;
use std::collections::HashSet;
use std::sync::Arc;
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep_until};

/// The first item, under the lock; waits for both. None when it came too late: see [`for_call`].
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
                    // Another consumer may understand it. Until it is done nobody may take the next one.
                    drop(hold);
                    until_acceptable(&task, due).await?;
                }
                First::Lost => {}
            }
        }
    })
    .await
}

/// The first item, if nobody else has the lock, and there is one that this process does not leave to others.
pub(crate) async fn try_take_locked(store: &Arc<Store>, lock: &Line) -> Result<Option<ClaimedItem>, Error> {
    let (task, lock) = (Arc::clone(store), lock.clone());
    for_call(store, async move {
        loop {
            if !lock.ahead(None).await?.is_nobody() {
                return Ok(None);
            }
            let hold = match lock.take_ticket(None).await?.try_now().await {
                Ok(Some(hold)) => hold,
                Ok(None) => return Ok(None),
                Err(WaitError::Core(error)) => return Err(error),
                Err(_) => continue,
            };
            let listing = task.items.list().await?;
            let names = acceptable(&task, &in_turn(&task, &listing));
            return if names.is_empty() { Ok(None) } else { hand_over(&task, hold, names).await };
        }
    })
    .await
}

/// Lets a task take an item for a call. The call may be dropped, which ends the task, or not be polled for
/// long: then the lock is held no longer than the offer to it stands, and it finds nothing.
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
        // The drop of an offer that nobody gets leaves its item to the task that claims.
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
    /// These, in their order: the first of them that is there.
    Items(Vec<String>),
    /// An item that this process leaves to others. With the time at which another may be the first.
    Refused(Option<Instant>),
    /// The lock was lost, or the client is being closed, of which the next attempt tells.
    Lost,
}

/// Waits under the lock until there is an item.
async fn first_under(store: &Store, hold: &Hold) -> Result<First, Error> {
    let mut folder = store.client.watch_children(&store.paths.items)?;
    let mut listing = Listing { folder: 0, items: Vec::new(), claimed: HashSet::new() };
    loop {
        store.note(&listing);
        let backlog = in_turn(store, &listing);
        let names = acceptable(store, &backlog);
        if !names.is_empty() {
            return Ok(First::Items(names));
        }
        if !backlog.is_empty() {
            return Ok(First::Refused(backlog.next()));
        }
        let next = backlog.next();
        tokio::select! {
            listed = folder.next() => {
                // It ends with the client, whose end `acquire` reports.
                let Some(listed) = listed else { return Ok(First::Lost) };
                listing = store.items.listing(listed?, HashSet::new());
            }
            () = sleep_until(next.unwrap_or_else(Instant::now)), if next.is_some() => {}
            () = stage_reached(&store.client, Stage::Deliveries) => {
                return Err(Error::closed("take", &store.path));
            }
            reason = hold.lost() => {
                tracing::debug!(path = %store.path, %reason, "the lock of the queue was lost while it was empty");
                return Ok(First::Lost);
            }
        }
    }
}

/// Waits, without the lock, until the first item is one that this process does not leave to others.
async fn until_acceptable(store: &Arc<Store>, mut due: Option<Instant>) -> Result<(), Error> {
    let mut idle = Idle::default();
    loop {
        let again = store.aside.next(Instant::now()).into_iter().chain(due).min();
        tokio::select! {
            sign = idle.sign(store, None) => match sign? {
                Sign::Listed(listing) if matches!(store.prospect(&listing, false), Prospect::Refused(_)) => {
                    due = in_turn(store, &listing).next();
                }
                // The next attempt says so where the client is closed.
                Sign::Listed(_) | Sign::Due | Sign::Closed => return Ok(()),
            },
            // This process looks at the item once more.
            () = sleep_until(again.unwrap_or_else(Instant::now)), if again.is_some() => return Ok(()),
            () = stage_reached(&store.client, Stage::Deliveries) => {
                return Err(Error::closed("take", &store.path));
            }
        }
    }
}

/// The items whose turn has come, in their order. Nobody claims them: the lock is what decides.
fn in_turn(store: &Store, listing: &Listing) -> Backlog {
    let mut backlog = Backlog::default();
    backlog.fill(listing.items.clone(), &HashSet::new(), &store.own, &Aside::default(), store.time_of_day());
    backlog
}

/// The first items of `backlog`, up to one that this process leaves to others: none may be handed out before
/// it.
fn acceptable(store: &Store, backlog: &Backlog) -> Vec<String> {
    let now = Instant::now();
    let names = backlog.first(usize::MAX).into_iter();
    if planted!(SecondBeforeFirst) {
        return names.filter(|name| !store.aside.has(name, now)).collect();
    }
    names.take_while(|name| !store.aside.has(name, now)).collect()
}

/// Counts the first of `names` that is there as handed out. `None` when there is none, or the lock was lost.
///
/// # Cancel safety
/// Cancel safe: what was counted for a call that is gone is taken back.
async fn hand_over(store: &Arc<Store>, hold: Hold, names: Vec<String>) -> Result<Option<Offer>, Error> {
    let (sender, receiver) = oneshot::channel();
    let counting = Arc::clone(store);
    let count = async move {
        let counted = count_first(&counting, hold, names).await;
        let offer = counted.map(|item| item.map(|item| Offer::new(&counting, vec![item])));
        if let Ok(Some(_)) = &offer {
            // The drop of an offer that nobody gets leaves its item to this task.
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

/// Counts a delivery of the first of `names` that is there, in its data: an ephemeral item can have no child.
async fn count_first(
    store: &Arc<Store>,
    hold: Hold,
    names: Vec<String>,
) -> Result<Option<ClaimedItem>, Error> {
    for name in names {
        loop {
            let path = store.paths.item(&name);
            let node = match store.client.get(&path).await {
                Ok(node) => node,
                Err(error) if error.kind() == ErrorKind::NoNode => break,
                Err(error) => return Err(error),
            };
            match count(&hold, &path, &node, counted(store, &node)).await {
                Ok(Some(node)) => {
                    return Ok(Some(ClaimedItem {
                        hold,
                        name,
                        node,
                        handed_out: true,
                        counted_since: 0,
                        own: None,
                    }));
                }
                Ok(None) => {
                    return Ok(Some(ClaimedItem {
                        hold,
                        name,
                        node,
                        handed_out: false,
                        counted_since: 0,
                        own: None,
                    }));
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

/// The node's data with one hand-out more; `None` where it is not framed as an item's.
fn counted(store: &Store, node: &Node) -> Option<Bytes> {
    let (base, item) = store.paths.unframe(&node.data).ok()?;
    store.paths.frame(&item, base.wrapping_add(1))
}

/// Sets the data of a node, and returns the node as it is then; only looks after the lock without data.
async fn count(hold: &Hold, path: &str, node: &Node, data: Option<Bytes>) -> Result<Option<Node>, Error> {
    let Some(data) = data else {
        hold.verify().await?;
        return Ok(None);
    };
    let count = hold.transaction().set(path, data.clone(), node.stat.version);
    // Exact: after a lost reply it must be certain whether this delivery was counted (decision 11).
    count.commit_exactly().await?;
    let mut counted = node.clone();
    counted.data = data;
    counted.stat.version = node.stat.version.wrapping_add(1);
    Ok(Some(counted))
}
