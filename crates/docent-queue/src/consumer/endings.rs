//! Ends of claims whose items were not handed to any call.

use crate::layout::Head;
use crate::store::{ClaimedItem, ItemEnd, Leftover, Store, ensure_folder};
use bytes::Bytes;
use docent_core::recipe::{Hold, full_error, full_path};
use docent_core::{CreateMode, Error, ErrorKind, Stat};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Pause in ordered mode before an item is checked again that could not be moved to the dead letters. In this
/// mode such an item blocks the whole queue.
const IN_THE_WAY: Duration = Duration::from_secs(10);

/// Text before the sequence number in a dead letter's name.
pub const LETTER: &str = "letter-";

/// Ends the claim of an item that no call has.
pub(super) async fn end(store: Arc<Store>, Leftover { item, end, done }: Leftover) {
    match end {
        ItemEnd::Unclaim => {
            if item.handed_out {
                store.hand_out_size.set(1);
            }
            give_back(&store, item).await;
        }
        ItemEnd::Delay(until) => delay(&store, item, until).await,
        ItemEnd::Bury(reason, detail) => {
            // A claim that finds an item handed out too often is not a hand-out itself.
            let deliveries = store.paths.counts().then(|| item.handed_out_before(&store.paths));
            let ClaimedItem { hold, name, node, .. } = item;
            let head = Head::new(reason, &detail, deliveries, &name);
            if let Err(error) = bury(&store, hold, &node.data, &head).await {
                bury_failed(&store, &name, &node.stat, &error);
            }
        }
    }
    store.dispatcher.request_listing();
    if let Some(done) = done {
        let _ = done.send(());
    }
}

/// Gives an item back to its place, to be handed out from the time `until`.
async fn delay(store: &Store, item: ClaimedItem, until: u64) {
    let name = item.name.clone();
    if let Err(error) = store.items.delay(item, until).await {
        // The drop of the hold ends the claim.
        // Event: The client could not write the delay of an item that was given back; the field `error` has
        // the reason. The item is available again without a delay.
        tracing::debug!(target: "docent::queue", client = %store.client.label(), path = %full_path(&store.client, &store.path), item = %name, error = %full_error(&store.client, &error), "failed to delay an item; giving it back without a delay");
    }
}

/// Gives an item back as if it had not been claimed: if its delivery was counted, the count is corrected.
async fn give_back(store: &Store, item: ClaimedItem) {
    let frame = match item.handed_out && store.paths.counts() {
        true => store.paths.with_base(&item.node.data, |base| base.wrapping_sub(1)),
        false => None,
    };
    let ClaimedItem { hold, name, node, .. } = item;
    let ended = match frame {
        Some(frame) => {
            let path = store.paths.item(&name);
            let uncount = store.client.transaction().set(&path, frame, node.stat.version);
            hold.end_with("give back", &[], uncount).await.map(drop)
        }
        None => hold.release().await.map(drop),
    };
    if let Err(error) = ended {
        // The drop of the hold ends the claim.
        // Event: A consumer could not give back an item that no call took; the field `error` has the reason.
        // Its claim is released in the background, and the delivery may stay counted.
        tracing::debug!(target: "docent::queue", client = %store.client.label(), path = %full_path(&store.client, &store.path), item = %name, error = %full_error(&store.client, &error), "failed to give back an item; releasing its claim in the background");
    }
}

/// Moves an item to the dead letters, in one step.
pub(crate) async fn bury(store: &Store, hold: Hold, node: &Bytes, head: &Head) -> Result<(), Error> {
    let Head { reason, detail, item, .. } = head;
    // Event: An item is moved to the dead letters of its queue, because it was handed out too often, could
    // not be decoded or was rejected. The fields `reason` and `detail` say which.
    // Action: Inspect the dead letters with `docent queue dead`; put the item back into the queue, or delete
    // it.
    tracing::warn!(target: "docent::queue", client = %store.client.label(), path = %full_path(&store.client, &store.path), item, %reason, detail, "moving the item to the dead letters");
    let letter =
        head.letter(node).map_err(|error| Error::invalid_input("take", format!("dead letter: {error}")))?;
    if !store.has_dead.load(Ordering::Acquire) {
        let ensure = ensure_folder(&store.client, &store.paths.dead);
        match hold.run(ensure).await {
            Ok(ensured) => ensured?,
            Err(_) => hold.check_for("take")?,
        }
        store.has_dead.store(true, Ordering::Release);
    }
    let path = format!("{}/{LETTER}", store.paths.dead);
    let write = store.client.transaction().create(&path, letter, CreateMode::PersistentSequential);
    let done = hold.end_with("take", &[store.paths.item(item)], write).await;
    if done.as_ref().is_err_and(|error| error.kind() == ErrorKind::NoNode) {
        store.has_dead.store(false, Ordering::Release);
    }
    done.map(drop)
}

/// Leaves an item alone that could not be moved for a permanent reason.
fn bury_failed(store: &Store, item: &str, stat: &Stat, error: &Error) {
    use ErrorKind::{AuthFailed, Closed, EnsembleRolledBack, NoNode, OutcomeUnknown};
    // The item is handed out and fails here again, or the error does not concern the item.
    let passes = matches!(error.kind(), NoNode | OutcomeUnknown | Closed | AuthFailed | EnsembleRolledBack);
    if passes || error.is_lost() || error.is_retryable() {
        return;
    }
    // Event: An item could not be moved to the dead letters; the field `error` has the reason. This process
    // no longer takes the item. In ordered mode the item blocks the queue, and the move is retried every 10
    // seconds.
    // Action: Fix the cause in the field `error`, usually missing permissions on the folder of the dead
    // letters.
    tracing::error!(target: "docent::queue", client = %store.client.label(), path = %full_path(&store.client, &store.path), item, error = %full_error(&store.client, error), "cannot move the item to the dead letters; leaving it in the queue");
    match store.lock {
        Some(_) => store.skipped.skip_for(item, stat, IN_THE_WAY),
        None => store.skipped.skip_for_good(item, stat),
    }
}
