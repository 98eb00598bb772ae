use super::{OwnClaims, SkippedItems};
use crate::layout::{ItemName, Turns};
use std::collections::{HashSet, VecDeque};
use std::time::Duration;
use tokio::time::Instant;

/// Minimum time for which a listing is used while it still has items. After that time, a returned item is in
/// its place again.
const FRESH: Duration = Duration::from_millis(500);
/// Time for which a listing that was requested in advance is valid for the next claim. Other consumers may
/// take items meanwhile.
const AHEAD: Duration = Duration::from_millis(50);
/// Maximum wait for the due time of an item, because the process's clock may be adjusted meanwhile.
const LONGEST: Duration = Duration::from_secs(30);

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

/// Items of a `Queue` that may be free: those of the `LastListing` whose time has come.
#[derive(Debug, Default)]
pub(crate) struct Backlog {
    pub(crate) ready: LastListing,
    /// Time at which the first item that is missing from `ready`, because it is delayed or skipped, may be
    /// handed out.
    pub(crate) next: Option<Instant>,
    /// Whether other processes had claimed items at the time of the listing.
    shared: bool,
    /// Time until which the listing, which was requested in advance, is valid for the next claim.
    ahead: Option<Instant>,
    /// Whether an item came back since the listing.
    pub(crate) has_returned: bool,
}

impl Backlog {
    /// Returns whether the items have to be listed again, although there may be items left.
    pub(crate) fn is_old(&self, now: Instant) -> bool {
        self.ready.is_old(now, FRESH)
    }

    /// Returns whether the items have to be listed again because an item came back, or its time has come.
    pub(crate) fn has_more(&self, now: Instant) -> bool {
        (self.has_returned || self.has_turned(now)) && self.ready.may_be_listed(now)
    }

    /// Returns whether the listing may be used later, although other processes may change the queue
    /// meanwhile. This is so if a new listing would be expensive, or if no other process takes items. If
    /// other processes take items, items that they give back would be overlooked.
    pub(crate) fn is_kept(&self, now: Instant) -> bool {
        self.ready.is_long() || self.is_private(now) || self.ahead.is_some_and(|until| now < until)
    }

    /// Returns whether no other process takes items, as far as is known.
    fn is_private(&self, now: Instant) -> bool {
        !self.shared && !self.ready.is_contended(now)
    }

    /// Returns whether the next call will want a new listing that probably contains items, because the last
    /// one contained several.
    pub(crate) fn is_wanted_ahead(&self, now: Instant) -> bool {
        !self.ready.is_long()
            && self.ready.listed_items > 1
            && (self.ready.is_empty() || !self.is_private(now))
    }

    /// Records that the listing was requested in advance of the next claim.
    pub(crate) fn listed_ahead(&mut self) {
        self.ahead = Some(Instant::now() + AHEAD);
    }

    /// Returns whether the listing was requested in advance of this claim and is still valid for it.
    pub(crate) fn take_ahead(&mut self, now: Instant) -> bool {
        self.ahead.take().is_some_and(|until| now < until)
    }

    /// Takes over a listing: the items that are neither `claimed` nor left alone here.
    pub(crate) fn fill(
        &mut self,
        items: impl IntoIterator<Item = ItemName>,
        claimed: &HashSet<String>,
        own: &OwnClaims,
        skipped: &SkippedItems,
        time_of_day: u64,
    ) {
        let now = Instant::now();
        let mut shared = false;
        let free = items.into_iter().filter(|item| {
            let is_free = !claimed.contains(&item.text);
            shared |= !is_free && !own.has(&item.text);
            is_free
        });
        let turns = Turns::at(time_of_day, free.filter(|item| !skipped.contains(&item.text, now)));
        self.ready.fill(turns.ready.into_iter().map(|item| item.text).collect());
        (self.shared, self.ahead) = (shared, None);
        let due = turns.next.map(|due| now + until_then(due, time_of_day));
        self.next = [due, skipped.next(now)].into_iter().flatten().min();
    }

    /// Returns whether the time of a delayed item has come.
    fn has_turned(&self, now: Instant) -> bool {
        self.next.is_some_and(|next| next <= now)
    }
}

/// Items that may be free, in order, according to the last listing and the attempts since.
#[derive(Debug, Default)]
pub(crate) struct LastListing {
    items: VecDeque<String>,
    /// Time of the listing.
    listed: Option<Instant>,
    /// Number of items that were free at that time.
    listed_items: usize,
    /// Time until which other processes are expected to take the same items.
    contended: Option<Instant>,
}

impl LastListing {
    /// Takes over a listing of items in their order.
    pub(crate) fn fill(&mut self, items: Vec<String>) {
        (self.listed, self.listed_items) = (Some(Instant::now()), items.len());
        self.items = items.into();
    }

    /// Forgets the listing, but not whether other processes take the same items.
    pub(crate) fn clear(&mut self) {
        *self = Self { contended: self.contended, ..Self::default() };
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// Returns whether the items have to be listed again, although there may be items left: after `fresh`, or
    /// after the time that corresponds to the listing's cost, whichever is longer.
    pub(crate) fn is_old(&self, now: Instant, fresh: Duration) -> bool {
        let worth = FRESH_PER_ITEM.saturating_mul(u32::try_from(self.listed_items).unwrap_or(u32::MAX));
        self.listed.is_none_or(|listed| now.duration_since(listed) >= fresh.max(worth))
    }

    /// Returns whether the items may be listed again for the sake of one item.
    fn may_be_listed(&self, now: Instant) -> bool {
        self.items.len() <= SHORT || self.is_old(now, Duration::ZERO)
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
        self.items.iter().take(count).cloned().collect()
    }

    /// Removes the first item.
    pub(crate) fn pop(&mut self) -> Option<String> {
        self.items.pop_front()
    }

    /// Removes the first `count` items.
    pub(crate) fn taken(&mut self, count: usize) {
        self.items.drain(..count.min(self.items.len()));
    }

    /// Removes the item with this name, because it is not free.
    pub(crate) fn forget(&mut self, name: &str) {
        let index = self.items.iter().position(|item| item == name);
        index.map(|index| self.items.remove(index));
    }

    /// Removes the items that are `claimed`, among the first items: as many as there are claims, plus
    /// `count`.
    pub(crate) fn forget_claimed(&mut self, claimed: &HashSet<String>, count: usize) {
        let first = claimed.len().saturating_add(count).min(self.items.len());
        let kept: Vec<_> = self.items.drain(..first).filter(|item| !claimed.contains(item)).collect();
        kept.into_iter().rev().for_each(|item| self.items.push_front(item));
    }

    /// Returns the names of items at the positions 0, 1, 3, 7 and so on. Returns no names if a listing is
    /// cheaper.
    pub(crate) fn marks(&self) -> Vec<String> {
        let marks =
            (0..if self.is_long() { MARKS } else { 0 }).map_while(|power| self.items.get(mark(power)));
        marks.cloned().collect()
    }

    /// Removes the items up to the last one of the leading `marks` that are all taken. Because items are
    /// taken in order, the items between two taken items are taken as well, except for an item that came
    /// back.
    pub(crate) fn forget_taken(&mut self, marks: &[String], is_taken: impl Fn(usize, &str) -> bool) {
        // Another call may have taken items from the front since the marks were read, or may have listed the
        // items again.
        let is_unchanged = |index, name: &String| self.items.get(mark(index)) == Some(name);
        let is_deleted =
            |(index, name): &(usize, &String)| is_unchanged(*index, name) && is_taken(*index, name);
        if let Some(last) = marks.iter().enumerate().take_while(is_deleted).count().checked_sub(1) {
            self.taken(mark(last) + 1);
        }
    }

    /// Puts an item back into its place, if the items are ordered by name.
    pub(crate) fn put_back(&mut self, item: String) {
        if let Err(place) = self.items.binary_search(&item) {
            self.items.insert(place, item);
        }
    }
}

/// Returns the time from `time_of_day` until an item is `due`, both in milliseconds since the Unix epoch.
pub(super) fn until_then(due: u64, time_of_day: u64) -> Duration {
    Duration::from_millis(due.saturating_sub(time_of_day)).min(LONGEST)
}

/// Returns the position of a mark: 0, 1, 3, 7 and so on.
fn mark(power: usize) -> usize {
    (1 << power) - 1
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An arbitrary time of day.
    const NOW: u64 = 1_000_000;

    #[test]
    fn claimed_items_are_skipped_and_the_remaining_ones_stay_in_order() {
        let names = [3, 1, 2, 0, 4].map(|number| format!("item-{number:010}"));
        let items = names.clone().into_iter().filter_map(|name| ItemName::parse(name, "item-"));
        let mut backlog = Backlog::default();
        assert!(backlog.is_old(Instant::now()) && backlog.ready.first(1).is_empty());
        let own = OwnClaims::default();
        backlog.fill(items, &HashSet::from([names[3].clone()]), &own, &SkippedItems::default(), NOW);
        assert!(!backlog.is_old(Instant::now()) && backlog.is_old(Instant::now() + FRESH));
        backlog.ready.forget(&names[2]);
        assert_eq!(backlog.ready.first(2), [names[1].clone(), names[0].clone()]);
        backlog.ready.taken(1);
        backlog.ready.forget_claimed(&HashSet::from([names[0].clone()]), 1);
        assert_eq!(backlog.ready.first(9), [names[4].clone()]);
    }

    #[test]
    fn a_short_listing_is_kept_while_no_other_process_takes_items() {
        let name = |number: u32| format!("item-{number:010}");
        let own = OwnClaims::default();
        let note = own.note(&name(0));
        let kept_with = |count: u32, claimed: &[u32]| {
            let mut backlog = Backlog::default();
            let items = (0..count).filter_map(|number| ItemName::parse(name(number), "item-"));
            let claimed = claimed.iter().copied().map(name).collect();
            backlog.fill(items, &claimed, &own, &SkippedItems::default(), NOW);
            backlog.is_kept(Instant::now())
        };
        assert!(kept_with(3, &[]) && kept_with(3, &[0]));
        assert!(!kept_with(3, &[1]) && !kept_with(3, &[0, 2]) && kept_with(3_000, &[1]));
        drop(note);
        assert!(!kept_with(3, &[0]));
        let mut contended = Backlog::default();
        contended.ready.contend();
        assert!(!contended.is_kept(Instant::now()) && contended.is_kept(Instant::now() + FRESH));
        contended.listed_ahead();
        assert!(contended.is_kept(Instant::now()) && !contended.is_kept(Instant::now() + AHEAD));
        assert!(contended.take_ahead(Instant::now()) && !contended.take_ahead(Instant::now()));
    }

    #[test]
    fn a_delayed_item_is_waited_for() {
        let name = format!("{}0000000000", ItemName::prefix("item-", 0, Some(NOW + 5_000)));
        let mut backlog = Backlog::default();
        let own = OwnClaims::default();
        backlog.fill(ItemName::parse(name, "item-"), &HashSet::new(), &own, &SkippedItems::default(), NOW);
        assert!(backlog.ready.first(1).is_empty() && !backlog.has_turned(Instant::now()));
        assert!(backlog.has_turned(Instant::now() + Duration::from_secs(6)));
    }

    fn names(count: usize) -> Vec<String> {
        (0..count).map(|number| format!("item-{number:010}")).collect()
    }

    fn listing(count: usize) -> LastListing {
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
