//! Ends of claims whose items were handed to nobody.

use crate::layout::Head;
use crate::store::{ClaimedItem, ItemEnd, Leftover, Store, ensure_folder};
use bytes::Bytes;
use docent_core::recipe::Hold;
use docent_core::{CreateMode, Error, ErrorKind, Stat};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Pause before an item is looked at again that could not be moved to the dead letters, in ordered mode,
/// where it keeps the queue from all others.
const IN_THE_WAY: Duration = Duration::from_secs(10);

/// Text before the number in a dead letter's name.
pub const LETTER: &str = "letter-";

/// Ends the claim of an item that no call has any more.
pub(super) async fn end(store: Arc<Store>, Leftover { item, end, done }: Leftover) {
    match end {
        ItemEnd::Unclaim => {
            if item.handed_out {
                store.hand_out_size.unasked();
            }
            give_back(&store, item).await;
        }
        ItemEnd::Delay { until, deliveries } => delay(&store, item, until, deliveries).await,
        ItemEnd::Bury(reason, detail) => {
            // The claim that finds an item handed out too often is no hand-out.
            let deliveries = store.paths.counts().then(|| item.handed_out_before(&store.paths));
            let ClaimedItem { hold, name, node, .. } = item;
            let head = Head::new(reason, &detail, deliveries, &name);
            if let Err(error) = bury(&store, hold, &node.data, &head).await {
                bury_failed(&store, &name, &node.stat, &error);
            }
        }
    }
    store.desk.look_again();
    if let Some(done) = done {
        let _ = done.send(());
    }
}

/// Gives an item back to its place, to be handed out from a time on.
async fn delay(store: &Store, item: ClaimedItem, until: u64, deliveries: Option<u32>) {
    let ClaimedItem { hold, name, node, .. } = item;
    if let Err(error) = store.items.delay(hold, &name, &node.data, deliveries, until).await {
        // The drop of the hold ends the claim.
        tracing::debug!(path = %store.path, item = %name, %error, "failed to delay an item; giving it back without a delay");
    }
}

/// Gives an item back as if it had not been claimed: where its claim was counted, that is taken back.
async fn give_back(store: &Store, item: ClaimedItem) {
    let frame = match item.handed_out && store.paths.counts() {
        true => uncounted(store, &item),
        false => None,
    };
    let ClaimedItem { hold, name, node, .. } = item;
    let ended = match frame {
        Some(frame) => {
            let path = store.paths.item(&name);
            let uncount = store.client.transaction().set(&path, frame, node.stat.version);
            hold.end_with("give back", &[], uncount).await.map(drop)
        }
        None => hold.release().await,
    };
    if let Err(error) = ended {
        // The drop of the hold sees to the claim.
        tracing::debug!(path = %store.path, item = %name, %error, "an item was given back as if handed out");
    }
}

/// The node's data with one hand-out less; `None` where the data is not framed as an item's.
fn uncounted(store: &Store, item: &ClaimedItem) -> Option<Bytes> {
    let (base, bytes) = store.paths.unframe(&item.node.data).ok()?;
    store.paths.frame(&bytes, base.wrapping_sub(1))
}

/// Moves an item to the dead letters, in one step.
pub(crate) async fn bury(store: &Store, hold: Hold, node: &Bytes, head: &Head) -> Result<(), Error> {
    let Head { reason, detail, item, .. } = head;
    tracing::warn!(path = %store.path, item, %reason, detail, "item goes to the dead letters");
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

/// Leaves an item alone that could not be moved for a reason that stays.
fn bury_failed(store: &Store, item: &str, stat: &Stat, error: &Error) {
    use ErrorKind::{AuthFailed, Closed, EnsembleRolledBack, NoNode, OutcomeUnknown};
    // It is handed out again, and comes here again; or this is not about the item.
    let passes = matches!(error.kind(), NoNode | OutcomeUnknown | Closed | AuthFailed | EnsembleRolledBack);
    if passes || error.is_lost() || error.is_retryable() {
        return;
    }
    tracing::error!(path = %store.path, item, %error, "item cannot go to the dead letters");
    match store.lock {
        Some(_) => store.aside.leave_for(item, stat, IN_THE_WAY),
        None => store.aside.leave_for_good(item, stat),
    }
}
