use std::collections::VecDeque;
use std::time::Duration;
use tokio::time::Instant;

/// Time for which other processes are expected to keep taking the same items, after they once did.
const CONTENDED: Duration = Duration::from_millis(500);
/// Time per item for which a listing is used, so that long listings are rare: 5 s for 100,000 items.
const FRESH_PER_ITEM: Duration = Duration::from_micros(50);
/// Number of items up to which a new listing costs less than a failed attempt.
const SHORT: usize = 200;
/// Number of items from which a listing costs more than several failed attempts.
const LONG: usize = 1_000;
/// Number of items that are checked to find out how many of the first items are taken.
const MARKS: usize = 6;

/// Items that may be free, in order, according to the last listing and the attempts since.
#[derive(Debug)]
pub(crate) struct LastListing<I> {
    items: VecDeque<I>,
    listed: Option<Listed>,
    /// Time until which other processes are expected to take the same items.
    contended: Option<Instant>,
}

/// Time and cost of the listing.
#[derive(Debug, Clone, Copy)]
struct Listed {
    at: Instant,
    /// Number of items that were free.
    items: usize,
}

impl Listed {
    /// Returns how long the listing should be used, in view of its cost.
    fn worth(self) -> Duration {
        FRESH_PER_ITEM.saturating_mul(u32::try_from(self.items).unwrap_or(u32::MAX))
    }
}

impl<I> Default for LastListing<I> {
    fn default() -> Self {
        Self { items: VecDeque::new(), listed: None, contended: None }
    }
}

impl<I: AsRef<str>> LastListing<I> {
    /// Takes over a listing of items in their order.
    pub(crate) fn fill(&mut self, items: Vec<I>) {
        self.listed = Some(Listed { at: Instant::now(), items: items.len() });
        self.items = items.into();
    }

    /// Forgets the listing, but not whether other processes take the same items.
    pub(crate) fn clear(&mut self) {
        self.items = VecDeque::new();
        self.listed = None;
    }

    /// Returns the number of items that were free at the time of the listing.
    pub(crate) fn listed_items(&self) -> usize {
        self.listed.map_or(0, |listed| listed.items)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// Returns whether the items have to be listed again, although there may be items left: after `fresh`, or
    /// after the time that corresponds to the listing's cost, whichever is longer.
    pub(crate) fn is_old(&self, now: Instant, fresh: Duration) -> bool {
        self.listed.is_none_or(|listed| now.duration_since(listed.at) >= fresh.max(listed.worth()))
    }

    /// Returns whether the items may be listed again for the sake of one item.
    pub(crate) fn may_be_listed(&self, now: Instant) -> bool {
        self.items.len() <= SHORT
            || self.listed.is_none_or(|listed| now.duration_since(listed.at) >= listed.worth())
    }

    /// Returns whether a new listing costs more than several failed attempts.
    pub(crate) fn is_long(&self) -> bool {
        self.items.len() >= LONG
    }

    /// Records that other processes take the same items.
    pub(crate) fn contend(&mut self) {
        self.contended = Some(Instant::now() + CONTENDED);
    }

    /// Returns whether other processes are expected to take the same items.
    pub(crate) fn is_contended(&self, now: Instant) -> bool {
        self.contended.is_some_and(|until| now < until)
    }

    /// Returns the first `count` items.
    pub(crate) fn first(&self, count: usize) -> Vec<String> {
        self.items.iter().take(count).map(|item| item.as_ref().to_owned()).collect()
    }

    /// Removes the first item.
    pub(crate) fn pop(&mut self) -> Option<I> {
        self.items.pop_front()
    }

    /// Removes the first `count` items.
    pub(crate) fn taken(&mut self, count: usize) {
        self.items.drain(..count.min(self.items.len()));
    }

    /// Removes the item with this name, because it is not free.
    pub(crate) fn forget(&mut self, name: &str) {
        let index = self.items.iter().position(|item| item.as_ref() == name);
        index.map(|index| self.items.remove(index));
    }

    /// Removes those of the first `count` items for which `is_kept` returns false.
    pub(crate) fn retain_first(&mut self, count: usize, is_kept: impl Fn(&str) -> bool) {
        let first = self.items.len().min(count);
        let kept: Vec<_> = self.items.drain(..first).filter(|item| is_kept(item.as_ref())).collect();
        kept.into_iter().rev().for_each(|item| self.items.push_front(item));
    }

    /// Returns the names of items at the positions 0, 1, 3, 7 and so on. Returns no names if a listing is
    /// cheaper.
    pub(crate) fn marks(&self) -> Vec<String> {
        let marks =
            (0..if self.is_long() { MARKS } else { 0 }).map_while(|power| self.items.get(mark(power)));
        marks.map(|item| item.as_ref().to_owned()).collect()
    }

    /// Removes the items up to the last one of the leading `marks` that are all taken. Because items are
    /// taken in order, the items between two taken items are taken as well, except for an item that came
    /// back.
    pub(crate) fn forget_taken(&mut self, marks: &[String], is_taken: impl Fn(usize, &str) -> bool) {
        // Another call may have taken items from the front since the marks were read, or may have listed the
        // items again.
        let is_unchanged =
            |index, name: &String| self.items.get(mark(index)).is_some_and(|item| item.as_ref() == name);
        let is_deleted =
            |(index, name): &(usize, &String)| is_unchanged(*index, name) && is_taken(*index, name);
        if let Some(last) = marks.iter().enumerate().take_while(is_deleted).count().checked_sub(1) {
            self.taken(mark(last) + 1);
        }
    }
}

impl<I: Ord> LastListing<I> {
    /// Puts an item back into its place, if the items are ordered by name.
    pub(crate) fn put_back(&mut self, item: I) {
        if let Err(place) = self.items.binary_search(&item) {
            self.items.insert(place, item);
        }
    }
}

/// Returns the position of a mark: 0, 1, 3, 7 and so on.
fn mark(power: usize) -> usize {
    (1 << power) - 1
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(count: usize) -> Vec<String> {
        (0..count).map(|number| format!("item-{number:010}")).collect()
    }

    fn listing(count: usize) -> LastListing<String> {
        let mut listing = LastListing::default();
        listing.fill(names(count));
        listing
    }

    #[test]
    fn items_before_the_first_existing_mark_are_forgotten() {
        let names = names(3_000);
        let rest_of = |taken: usize| {
            let mut listing = listing(3_000);
            let marks = listing.marks();
            assert_eq!(marks.last(), Some(&names[31]));
            listing.forget_taken(&marks, |_, mark| mark < names[taken].as_str());
            listing.first(1).remove(0)
        };
        let firsts = [(0, 0), (1, 1), (2, 2), (3, 2), (30, 16), (31, 16), (32, 32), (1_500, 32)];
        for (taken, first) in firsts {
            assert_eq!(rest_of(taken), names[first], "{taken}");
        }
    }

    #[test]
    fn marks_of_a_listing_that_has_changed_since_are_ignored() {
        let mut listing = listing(3_000);
        let marks = listing.marks();
        listing.pop();
        listing.forget_taken(&marks, |_, _| true);
        assert_eq!(listing.first(1), names(2)[1..]);
    }

    #[test]
    fn marks_of_another_listing_that_begins_alike_do_not_affect_its_later_items() {
        let mut listing = listing(3_000);
        let marks = listing.marks();
        let of_3_000 = names(3_000);
        listing.fill([&of_3_000[..1], &of_3_000[7..]].concat());
        listing.forget_taken(&marks, |_, mark| mark <= of_3_000[7].as_str());
        assert_eq!(listing.first(1), of_3_000[7..8]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_long_listing_is_used_longer() {
        let fresh = Duration::from_millis(500);
        let mut listing = listing(100_000);
        for (later, is_due) in [(4, false), (5, true)] {
            let later = Instant::now() + Duration::from_secs(later);
            assert_eq!((listing.is_old(later, fresh), listing.may_be_listed(later)), (is_due, is_due));
        }
        listing.taken(99_900);
        assert!(!listing.is_old(Instant::now(), fresh) && listing.may_be_listed(Instant::now()));
    }
}
