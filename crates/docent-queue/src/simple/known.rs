use super::simple_queue::in_order;
use crate::store::LastListing;
use docent_core::Children;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::Instant;

/// How long a listing is used while items of it are left. No item comes before those that are listed, except
/// where somebody names nodes by hand, or the queue's node is made anew.
const FRESH: Duration = Duration::from_secs(10);

/// Items of a `SimpleQueue` that are to be taken, as the last listing showed them, for all calls of its
/// clones.
#[derive(Default)]
pub(super) struct Known {
    shown: Mutex<Shown>,
    /// Told when a call gave an item up that it had not taken: the listings of calls that wait may not show
    /// it.
    returned: Notify,
}

#[derive(Default)]
struct Shown {
    items: LastListing<String>,
    /// Listings that were taken.
    taken: u64,
    /// Transaction of the folder's last change, as the last listing of it showed that.
    changed: i64,
}

/// Listing of the queue, for the `Known` items.
pub(super) struct Listing {
    /// Names of the items, in order.
    pub(super) names: Vec<String>,
    /// Transaction of the folder's last change; `None` where there is no folder.
    changed: Option<i64>,
    /// Listings that had been taken when it was asked for.
    asked: u64,
}

impl Listing {
    /// That of `folder`, which was asked for when so many listings [had been taken](Known::taken).
    pub(super) fn new(folder: Option<Children>, asked: u64) -> Self {
        let changed = folder.as_ref().map(|folder| folder.stat.pzxid);
        Self { names: folder.map_or_else(Vec::new, |folder| in_order(folder.names)), changed, asked }
    }
}

/// The first of the `Known` items, which one call tries to take.
///
/// # On drop
/// It goes back to its place for the next call, unless it is known to be gone.
pub(super) struct Candidate {
    known: Arc<Known>,
    name: String,
    is_gone: bool,
}

impl Known {
    fn shown(&self) -> MutexGuard<'_, Shown> {
        self.shown.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The first item, which is this call's from then on.
    pub(super) fn first(self: &Arc<Self>) -> Option<Candidate> {
        let name = self.shown().items.pop()?;
        Some(Candidate { known: Arc::clone(self), name, is_gone: false })
    }

    /// True when the queue is to be listed before anything is taken.
    pub(super) fn is_due(&self) -> bool {
        let (shown, now) = (self.shown(), Instant::now());
        let items = &shown.items;
        items.is_empty() || items.is_old(now, FRESH) || (!items.is_long() && items.is_contended(now))
    }

    /// True where others take items of a queue that is too long to be listed for each of them.
    pub(super) fn is_contended(&self) -> bool {
        let items = &self.shown().items;
        items.is_long() && items.is_contended(Instant::now())
    }

    /// Number of listings that were taken: one that is asked for from now on is younger than those.
    pub(super) fn taken(&self) -> u64 {
        self.shown().taken
    }

    /// Takes a listing, unless another call has taken a younger one since it was asked for: an older one does
    /// not show what was put since, and those who wait for that were told of it already.
    ///
    /// Transactions order listings of a folder that was made anew, too. Where there was none, or the servers
    /// went back to an older copy, only those are younger that are asked for later. To leave a listing out is
    /// safe: items that are gone cost an attempt in vain.
    pub(super) fn fill(&self, listing: Listing) {
        let mut shown = self.shown();
        let was_last = listing.asked == shown.taken;
        if was_last || listing.changed.is_some_and(|changed| changed >= shown.changed) {
            shown.taken += 1;
            shown.changed = listing.changed.unwrap_or(shown.changed);
            shown.items.fill(listing.names);
        }
    }

    /// Names to look at, to find out how many of the first are gone.
    pub(super) fn marks(&self) -> Vec<String> {
        self.shown().items.marks()
    }

    /// Forgets the items up to the last of the first `marks` that are all gone.
    pub(super) fn forget_gone(&self, marks: &[String], gone: &[bool]) {
        self.shown().items.forget_taken(marks, |index, _| gone[index]);
    }

    /// Waits until a call gave an item up.
    pub(super) async fn returned(&self) {
        self.returned.notified().await;
    }
}

impl Candidate {
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// It is not there any more: this call has taken it.
    pub(super) fn taken(mut self) {
        self.is_gone = true;
    }

    /// It was not there: somebody else has taken it. True when it is better to list the queue than to try the
    /// next one.
    pub(super) fn missed(mut self) -> bool {
        self.is_gone = true;
        let items = &mut self.known.shown().items;
        items.contend();
        !items.is_long()
    }
}

impl Drop for Candidate {
    fn drop(&mut self) {
        if !self.is_gone {
            self.known.shown().items.put_back(std::mem::take(&mut self.name));
            self.known.returned.notify_one();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The names of a listing that shows the folder after the transaction `changed`.
    fn listing(names: &[&str], changed: impl Into<Option<i64>>, asked: u64) -> Listing {
        let names = names.iter().map(ToString::to_string).collect();
        Listing { names, changed: changed.into(), asked }
    }

    fn fill(known: &Known, items: usize) {
        let names = (0..items).map(|item| format!("qn-{item:010}")).collect();
        known.fill(Listing { names, changed: Some(1), asked: known.taken() });
    }

    /// Takes what is left.
    fn left(known: &Arc<Known>) -> Vec<String> {
        let take = |first: Candidate| {
            let name = first.name().to_owned();
            first.taken();
            name
        };
        std::iter::from_fn(|| known.first().map(take)).collect()
    }

    #[test]
    fn a_listing_that_another_call_held_for_long_hides_no_item_that_was_put_since() {
        let known = Arc::new(Known::default());
        let asked = known.taken();
        known.fill(listing(&["x"], 7, asked));
        for late in [listing(&[], 6, asked), listing(&[], None, asked)] {
            known.fill(late);
        }
        assert_eq!(left(&known), ["x"]);
    }

    #[tokio::test]
    async fn an_item_that_went_back_to_its_place_is_there_for_the_call_that_is_told() {
        let known = Arc::new(Known::default());
        let asked = known.taken();
        known.fill(listing(&["x"], 7, asked));
        let cancelled = known.first();
        assert!(known.first().is_none());
        drop(cancelled);
        known.fill(listing(&[], 6, asked));
        known.returned().await;
        assert_eq!(left(&known), ["x"]);
    }

    #[test]
    fn a_listing_that_is_asked_for_later_counts_whatever_its_transaction() {
        let known = Arc::new(Known::default());
        known.fill(listing(&["a", "b"], 7, 0));
        // The folder is gone, and another one is there: by a newer transaction, or of an older copy.
        known.fill(listing(&[], None, known.taken()));
        assert!(known.is_due());
        known.fill(listing(&["c"], 9, known.taken()));
        assert_eq!(left(&known), ["c"]);
        known.fill(listing(&["d"], 2, known.taken()));
        assert_eq!(left(&known), ["d"]);
        // From then on it is the older copy's transactions that tell.
        let asked = known.taken();
        known.fill(listing(&["f"], 4, asked));
        known.fill(listing(&["e"], 3, asked));
        assert_eq!(left(&known), ["f"]);
    }

    #[tokio::test]
    async fn an_item_that_was_not_taken_goes_back_to_its_place() {
        let known = Arc::new(Known::default());
        assert!(known.is_due() && known.first().is_none());
        known.fill(listing(&["a", "b", "c", "d"], 1, 0));
        assert!(!known.is_due());
        let (first, second, third) = (known.first(), known.first(), known.first());
        drop(first);
        known.returned().await;
        second.unwrap().taken();
        drop(third);
        assert_eq!(left(&known), ["a", "c", "d"]);
    }

    #[test]
    fn a_short_queue_that_others_take_from_is_listed_again() {
        let known = Arc::new(Known::default());
        fill(&known, 10);
        assert!(known.first().unwrap().missed() && known.is_due() && !known.is_contended());
        fill(&known, 10_000);
        assert!(!known.first().unwrap().missed() && !known.is_due() && known.is_contended());
    }
}
