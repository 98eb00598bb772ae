use super::dispatcher::KEEP;
use super::{ClaimedItem, Store};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::time::Instant;

/// Items of an offer. The dispatcher shares them, and takes them back from a call that is not polled.
pub(super) type Offered = Arc<Mutex<Vec<ClaimedItem>>>;

/// Items on their way to a call. An offer is valid for two seconds, so a call that is not polled does not
/// keep items from other calls.
///
/// # On drop
/// Items that were not taken go to the shelf.
pub(crate) struct Offer {
    store: Arc<Store>,
    items: Offered,
}

impl Offer {
    pub(crate) fn new(store: &Arc<Store>, items: Vec<ClaimedItem>) -> Self {
        Self { store: Arc::clone(store), items: store.dispatcher.offered(items) }
    }

    /// Returns the items; no items if the offer has expired.
    pub(crate) fn take(self) -> Vec<ClaimedItem> {
        take_all(&self.items)
    }
}

impl Drop for Offer {
    fn drop(&mut self) {
        let keep = if self.store.lock.is_some() { std::time::Duration::ZERO } else { KEEP };
        self.store.dispatcher.offer_ended(&self.items, Instant::now() + keep);
    }
}

pub(super) fn take_all(offered: &Offered) -> Vec<ClaimedItem> {
    std::mem::take(&mut *offered.lock().unwrap_or_else(PoisonError::into_inner))
}

pub(super) fn is_empty(offered: &Offered) -> bool {
    offered.lock().unwrap_or_else(PoisonError::into_inner).is_empty()
}
