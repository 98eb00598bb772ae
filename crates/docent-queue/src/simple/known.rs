use super::simple_queue::in_order;
use crate::store::LastListing;
use docent_core::Children;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::Instant;

/// Time for which a listing is used while it still has items. No new item can precede the listed items,
/// except if a node is named by hand or the queue's node is re-created.
const FRESH: Duration = Duration::from_secs(10);

/// Items of a `SimpleQueue` that may be taken, as the last listing showed them. Shared by all calls of all
/// clones.
#[derive(Default)]
pub(super) struct KnownItems {
    shown: Mutex<LastShown>,
    /// Notified when a call returns an item that it did not take: the listings of waiting calls may not show
    /// that item.
    returned: Notify,
}

#[derive(Default)]
struct LastShown {
    items: LastListing,
    /// Number of listings that were taken over.
    taken: u64,
    /// Transaction of the folder's last change, according to the last listing.
    changed: i64,
}

/// Listing of the queue, for the `KnownItems` items.
pub(super) struct Listing {
    /// Names of the items, in order.
    pub(super) names: Vec<String>,
    /// Transaction of the folder's last change; `None` if there is no folder.
    changed: Option<i64>,
    /// Number of listings that had been taken over when this one was requested.
    requested_after: u64,
}

impl Listing {
    /// Creates the listing of `folder`, which was requested when `requested_after` listings [had been taken
    /// over](KnownItems::taken).
    pub(super) fn new(folder: Option<Children>, requested_after: u64) -> Self {
        let changed = folder.as_ref().map(|folder| folder.stat.pzxid);
        Self {
            names: folder.map_or_else(Vec::new, |folder| in_order(folder.names)),
            changed,
            requested_after,
        }
    }
}

/// The first of the `KnownItems` items, which one call tries to take.
///
/// # On drop
/// The item returns to its place for the next call, unless it is known to be deleted.
pub(super) struct Candidate {
    known: Arc<KnownItems>,
    name: String,
    is_deleted: bool,
}

impl KnownItems {
    fn shown(&self) -> MutexGuard<'_, LastShown> {
        self.shown.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Removes the first item for this call.
    pub(super) fn first(self: &Arc<Self>) -> Option<Candidate> {
        let name = self.shown().items.pop()?;
        Some(Candidate { known: Arc::clone(self), name, is_deleted: false })
    }

    /// Returns whether the queue has to be listed before an item is taken.
    pub(super) fn is_due(&self) -> bool {
        let (shown, now) = (self.shown(), Instant::now());
        let items = &shown.items;
        items.is_empty() || items.is_old(now, FRESH) || (!items.is_long() && items.is_contended(now))
    }

    /// Returns whether other processes take items of a queue that is too long to be listed for each of them.
    pub(super) fn is_contended(&self) -> bool {
        let items = &self.shown().items;
        items.is_long() && items.is_contended(Instant::now())
    }

    /// Returns the number of listings taken over so far: a listing that is requested now is newer than those.
    pub(super) fn taken(&self) -> u64 {
        self.shown().taken
    }

    /// Takes over a listing, unless another call has taken over a newer one since this one was requested. An
    /// older listing does not show the items that were put since, and calls that wait for those items have
    /// already been notified.
    ///
    /// Transactions also order the listings of a folder that was re-created. If there was no folder, or the
    /// servers were restored from an older snapshot, only listings that are requested later count as newer.
    /// Discarding a listing is safe: deleted items only cost a failed attempt.
    pub(super) fn fill(&self, listing: Listing) {
        let mut shown = self.shown();
        let was_last = listing.requested_after == shown.taken;
        if was_last || listing.changed.is_some_and(|changed| changed >= shown.changed) {
            shown.taken += 1;
            shown.changed = listing.changed.unwrap_or(shown.changed);
            shown.items.fill(listing.names);
        }
    }

    /// Returns the names to check, to find out how many of the first items are deleted.
    pub(super) fn marks(&self) -> Vec<String> {
        self.shown().items.marks()
    }

    /// Forgets the items up to the last one of the leading `marks` that are all deleted.
    pub(super) fn forget_deleted(&self, marks: &[String], deleted: &[bool]) {
        self.shown().items.forget_taken(marks, |index, _| deleted[index]);
    }

    /// Waits until a call returns an item.
    pub(super) async fn returned(&self) {
        self.returned.notified().await;
    }
}

impl Candidate {
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Records that this call has taken the item.
    pub(super) fn taken(mut self) {
        self.is_deleted = true;
    }

    /// Records that another consumer has taken the item. Returns whether listing the queue is better than
    /// trying the next item.
    pub(super) fn missed(mut self) -> bool {
        self.is_deleted = true;
        let items = &mut self.known.shown().items;
        items.contend();
        !items.is_long()
    }
}

impl Drop for Candidate {
    fn drop(&mut self) {
        if !self.is_deleted {
            self.known.shown().items.put_back(std::mem::take(&mut self.name));
            self.known.returned.notify_one();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Creates a listing that shows the folder after the transaction `changed`.
    fn listing(names: &[&str], changed: impl Into<Option<i64>>, requested_after: u64) -> Listing {
        let names = names.iter().map(ToString::to_string).collect();
        Listing { names, changed: changed.into(), requested_after }
    }

    fn fill(known: &KnownItems, items: usize) {
        let names = (0..items).map(|item| format!("qn-{item:010}")).collect();
        known.fill(Listing { names, changed: Some(1), requested_after: known.taken() });
    }

    /// Takes the remaining items.
    fn drain(known: &Arc<KnownItems>) -> Vec<String> {
        let take = |first: Candidate| {
            let name = first.name().to_owned();
            first.taken();
            name
        };
        std::iter::from_fn(|| known.first().map(take)).collect()
    }

    #[test]
    fn a_delayed_listing_hides_no_item_that_was_put_since() {
        let known = Arc::new(KnownItems::default());
        let requested_after = known.taken();
        known.fill(listing(&["x"], 7, requested_after));
        for late in [listing(&[], 6, requested_after), listing(&[], None, requested_after)] {
            known.fill(late);
        }
        assert_eq!(drain(&known), ["x"]);
    }

    #[tokio::test]
    async fn a_returned_item_is_available_to_the_notified_call() {
        let known = Arc::new(KnownItems::default());
        let requested_after = known.taken();
        known.fill(listing(&["x"], 7, requested_after));
        let cancelled = known.first();
        assert!(known.first().is_none());
        drop(cancelled);
        known.fill(listing(&[], 6, requested_after));
        known.returned().await;
        assert_eq!(drain(&known), ["x"]);
    }

    #[test]
    fn a_listing_that_is_requested_later_counts_whatever_its_transaction() {
        let known = Arc::new(KnownItems::default());
        known.fill(listing(&["a", "b"], 7, 0));
        // The folder was deleted and another one exists: created by a newer transaction, or restored from an
        // older snapshot.
        known.fill(listing(&[], None, known.taken()));
        assert!(known.is_due());
        known.fill(listing(&["c"], 9, known.taken()));
        assert_eq!(drain(&known), ["c"]);
        known.fill(listing(&["d"], 2, known.taken()));
        assert_eq!(drain(&known), ["d"]);
        // From here on the transactions of the older snapshot decide.
        let requested_after = known.taken();
        known.fill(listing(&["f"], 4, requested_after));
        known.fill(listing(&["e"], 3, requested_after));
        assert_eq!(drain(&known), ["f"]);
    }

    #[tokio::test]
    async fn an_item_that_was_not_taken_returns_to_its_place() {
        let known = Arc::new(KnownItems::default());
        assert!(known.is_due() && known.first().is_none());
        known.fill(listing(&["a", "b", "c", "d"], 1, 0));
        assert!(!known.is_due());
        let (first, second, third) = (known.first(), known.first(), known.first());
        drop(first);
        known.returned().await;
        second.unwrap().taken();
        drop(third);
        assert_eq!(drain(&known), ["a", "c", "d"]);
    }

    #[test]
    fn a_short_queue_with_rival_consumers_is_listed_again() {
        let known = Arc::new(KnownItems::default());
        fill(&known, 10);
        assert!(known.first().unwrap().missed() && known.is_due() && !known.is_contended());
        fill(&known, 10_000);
        assert!(!known.first().unwrap().missed() && !known.is_due() && known.is_contended());
    }
}
