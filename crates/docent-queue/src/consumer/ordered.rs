//! One consumer at a time: lock, take the smallest, delete it after success.

use super::ClaimedItem;
use crate::store::{LocalClaim, Store};
use docent_core::recipe::{Hold, Line, WaitError};
use docent_core::{Error, ErrorKind};
use futures_util::StreamExt;
use std::sync::Arc;

/// The first item, under the lock; waits for both.
pub(crate) async fn take_locked(store: &Arc<Store>, lock: &Line) -> Result<ClaimedItem, Error> {
    loop {
        let hold = lock.acquire(None).await?;
        let mut folder = store.client.watch_children(&store.paths.items)?;
        loop {
            tokio::select! {
                listed = folder.next() => {
                    // It ends with the client, whose end `acquire` reports.
                    let Some(listed) = listed else { break };
                    let names = listed?.map_or_else(Vec::new, |folder| store.items.among(folder.names));
                    let names = store.local.candidates(names);
                    if names.is_empty() {
                        continue;
                    }
                    if let Some(taken) = count_first(store, hold, names).await? {
                        return Ok(taken);
                    }
                    break;
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
        if !lock.is_open().await? {
            return Ok(None);
        }
        let hold = match lock.take_ticket(None).await?.try_now().await {
            Ok(Some(hold)) => hold,
            Ok(None) => return Ok(None),
            Err(WaitError::Core(error)) => return Err(error),
            Err(_) => continue,
        };
        let names = store.local.candidates(store.items.list().await?);
        return if names.is_empty() { Ok(None) } else { count_first(store, hold, names).await };
    }
}

/// Counts a delivery of the first of `names` that is there, by the version of its data: an ephemeral item
/// can have no child. `None` when there is none, or the lock was lost.
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
            let count = hold.transaction().set(&path, node.data.clone(), node.stat.version);
            // Exact: after a lost reply it must be certain whether this delivery was counted
            // (decision 11).
            match count.commit_exactly().await {
                Ok(_) => {
                    let deliveries = Some(node.stat.version.cast_unsigned().wrapping_add(1));
                    let mine = LocalClaim::new(store, name, hold.token());
                    return Ok(Some(ClaimedItem { guard: hold, mine, node: node.data, deliveries }));
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
