use crate::store::LastListing;
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
    items: Mutex<LastListing<String>>,
    /// Told when a call gave an item up that it had not taken: the listings of calls that wait may not show
    /// it.
    returned: Notify,
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
    fn items(&self) -> MutexGuard<'_, LastListing<String>> {
        self.items.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The first item, which is this call's from then on.
    pub(super) fn first(self: &Arc<Self>) -> Option<Candidate> {
        let name = self.items().pop()?;
        Some(Candidate { known: Arc::clone(self), name, is_gone: false })
    }

    /// True when the queue is to be listed before anything is taken.
    pub(super) fn is_due(&self) -> bool {
        let (items, now) = (self.items(), Instant::now());
        items.is_empty() || items.is_old(now, FRESH) || (!items.is_long() && items.is_contended(now))
    }

    /// True where others take items of a queue that is too long to be listed for each of them.
    pub(super) fn is_contended(&self) -> bool {
        let items = self.items();
        items.is_long() && items.is_contended(Instant::now())
    }

    /// Takes a listing, in order.
    pub(super) fn fill(&self, names: Vec<String>) {
        self.items().fill(names);
    }

    /// Names to look at, to find out how many of the first are gone.
    pub(super) fn marks(&self) -> Vec<String> {
        self.items().marks()
    }

    /// Forgets the items up to the last of the first `marks` that are all gone.
    pub(super) fn forget_gone(&self, marks: &[String], gone: &[bool]) {
        self.items().forget_taken(marks, |index, _| gone[index]);
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
        let mut items = self.known.items();
        items.contend();
        !items.is_long()
    }
}

impl Drop for Candidate {
    fn drop(&mut self) {
        if !self.is_gone {
            self.known.items().put_back(std::mem::take(&mut self.name));
            self.known.returned.notify_one();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn an_item_that_was_not_taken_goes_back_to_its_place() {
        let known = Arc::new(Known::default());
        assert!(known.is_due() && known.first().is_none());
        known.fill(["a", "b", "c", "d"].map(String::from).into());
        assert!(!known.is_due());
        let (first, second, third) = (known.first(), known.first(), known.first());
        drop(first);
        known.returned().await;
        second.unwrap().taken();
        drop(third);
        let left: Vec<_> = std::iter::from_fn(|| {
            known.first().map(|first| {
                let name = first.name().to_owned();
                first.taken();
                name
            })
        })
        .collect();
        assert_eq!(left, ["a", "c", "d"]);
    }

    #[test]
    fn a_short_queue_that_others_take_from_is_listed_again() {
        let known = Arc::new(Known::default());
        known.fill((0..10).map(|item| format!("qn-{item:010}")).collect());
        assert!(known.first().unwrap().missed() && known.is_due() && !known.is_contended());
        known.fill((0..10_000).map(|item| format!("qn-{item:010}")).collect());
        assert!(!known.first().unwrap().missed() && !known.is_due() && known.is_contended());
    }
}
