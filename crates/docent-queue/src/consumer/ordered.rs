//! One consumer at a time: lock, take the smallest, delete it after success.

use super::start;
use crate::store::{Backlog, ClaimedItem, Listing, Offer, Store};
use bytes::Bytes;
use docent_core::recipe::{Hold, Line, Stage, WaitError, spawn, stage_reached};
use docent_core::{Error, ErrorKind, Node};
use futures_util::StreamExt;
use std::collections::HashSet;
use std::sync::Arc;
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep_until};

/// The first item, under the lock; waits for both.
pub(crate) async fn take_locked(store: &Arc<Store>, lock: &Line) -> Result<ClaimedItem, Error> {
    loop {
        let hold = lock.acquire(None).await?;
        let mut folder = store.client.watch_children(&store.paths.items)?;
        let mut listing = Listing { folder: 0, items: Vec::new(), claimed: HashSet::new() };
        loop {
            let backlog = first_items(store, &listing);
            let names = backlog.first(usize::MAX);
            if !names.is_empty() {
                if let Some(taken) = hand_over(store, hold, names).await? {
                    return Ok(taken);
                }
                break;
            }
            tokio::select! {
                listed = folder.next() => {
                    // It ends with the client, whose end `acquire` reports.
                    let Some(listed) = listed else { break };
                    listing = store.items.listing(listed?, HashSet::new());
                }
                () = sleep_until(backlog.next().unwrap_or_else(Instant::now)), if backlog.next().is_some() => {}
                () = stage_reached(&store.client, Stage::Deliveries) => {
                    return Err(Error::closed("take", &store.path));
                }
                reason = hold.lost() => {
                    tracing::debug!(path = %store.path, %reason, "the lock of the queue was lost while it was empty");
                    break;
                }
            }
        }
    }
}

/// The first item, if nobody else has the lock and there is one.
pub(crate) async fn try_take_locked(store: &Arc<Store>, lock: &Line) -> Result<Option<ClaimedItem>, Error> {
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
        let names = first_items(store, &store.items.list().await?).first(usize::MAX);
        return if names.is_empty() { Ok(None) } else { hand_over(store, hold, names).await };
    }
}

/// The items that may be handed out. Nobody claims them: the lock is what decides.
fn first_items(store: &Store, listing: &Listing) -> Backlog {
    let mut backlog = Backlog::default();
    let names: Vec<_> = listing.items.clone();
    store.aside.keep_only(listing.folder, &names);
    backlog.fill(names, &HashSet::new(), &store.own, &store.aside);
    backlog
}

/// Counts the first of `names` that is there as handed out. `None` when there is none, or the lock was lost.
///
/// # Cancel safety
/// Cancel safe: what was counted for a call that is gone is taken back.
async fn hand_over(store: &Arc<Store>, hold: Hold, names: Vec<String>) -> Result<Option<ClaimedItem>, Error> {
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
        Ok(counted) => Ok(counted?.and_then(|offer| offer.take().pop())),
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
                        counted: true,
                        counted_since: 0,
                        own: None,
                    }));
                }
                Ok(None) => {
                    return Ok(Some(ClaimedItem {
                        hold,
                        name,
                        node,
                        counted: false,
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
