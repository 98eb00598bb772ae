use super::{LastListing, OwnClaims, SkippedItems};
use crate::layout::{ItemName, Turns};
use std::collections::HashSet;
use std::ops::{Deref, DerefMut};
use std::time::Duration;
use tokio::time::Instant;

/// Minimum time for which a listing is used while it still has items. After that time, a returned item is in
/// its place again.
const FRESH: Duration = Duration::from_millis(500);
/// Time for which a listing that was made in advance is valid for the next claim. Other consumers may take
/// items meanwhile.
const AHEAD: Duration = Duration::from_millis(50);
/// Maximum wait for the due time of an item, because the process's clock may be adjusted meanwhile.
const LONGEST: Duration = Duration::from_secs(30);

/// Items of a `Queue` that may be free: those of the `LastListing` whose time has come.
#[derive(Debug, Default)]
pub(crate) struct Backlog {
    ready: LastListing<ItemName>,
    /// Time at which a delayed item may be handed out.
    next: Option<Instant>,
    /// Whether other processes had claimed items at the time of the listing.
    shared: bool,
    /// Time until which the listing, which was made in advance, is valid for the next claim.
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
        self.is_long() || self.is_private(now) || self.ahead.is_some_and(|until| now < until)
    }

    /// Returns whether no other process takes items, as far as is known.
    fn is_private(&self, now: Instant) -> bool {
        !self.shared && !self.is_contended(now)
    }

    /// Returns whether the next call will want a new listing that probably contains items, because the last
    /// one contained several.
    pub(crate) fn is_wanted_ahead(&self, now: Instant) -> bool {
        !self.is_long() && self.listed_items() > 1 && (self.is_empty() || !self.is_private(now))
    }

    /// Records that the listing was made in advance of the next claim.
    pub(crate) fn listed_ahead(&mut self) {
        self.ahead = Some(Instant::now() + AHEAD);
    }

    /// Returns whether the listing was made in advance of this claim and is still valid for it.
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
        self.ready.fill(turns.ready);
        (self.shared, self.ahead) = (shared, None);
        let due = turns.next.map(|due| now + until_then(due, time_of_day));
        self.next = [due, skipped.next(now)].into_iter().flatten().min();
    }

    /// Forgets the items that are `claimed`, among the first items of the backlog: as many as there are
    /// claims, plus `count`.
    pub(crate) fn forget_claimed(&mut self, claimed: &HashSet<String>, count: usize) {
        let first = claimed.len().saturating_add(count);
        self.ready.retain_first(first, |name| !claimed.contains(name));
    }

    /// Returns the time at which a delayed item of the listing may be handed out.
    pub(crate) fn next(&self) -> Option<Instant> {
        self.next
    }

    /// Returns whether the time of such an item has come. The listing does not contain the item.
    fn has_turned(&self, now: Instant) -> bool {
        self.next.is_some_and(|next| next <= now)
    }
}

impl Deref for Backlog {
    type Target = LastListing<ItemName>;

    fn deref(&self) -> &Self::Target {
        &self.ready
    }
}

impl DerefMut for Backlog {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.ready
    }
}

fn until_then(due: u64, time_of_day: u64) -> Duration {
    Duration::from_millis(due.saturating_sub(time_of_day)).min(LONGEST)
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
        assert!(backlog.is_old(Instant::now()) && backlog.first(1).is_empty());
        let own = OwnClaims::default();
        backlog.fill(items, &HashSet::from([names[3].clone()]), &own, &SkippedItems::default(), NOW);
        assert!(!backlog.is_old(Instant::now()) && backlog.is_old(Instant::now() + FRESH));
        backlog.forget(&names[2]);
        assert_eq!(backlog.first(2), [names[1].clone(), names[0].clone()]);
        backlog.taken(1);
        backlog.forget_claimed(&HashSet::from([names[0].clone()]), 1);
        assert_eq!(backlog.first(9), [names[4].clone()]);
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
        contended.contend();
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
        assert!(backlog.first(1).is_empty() && !backlog.has_turned(Instant::now()));
        assert!(backlog.has_turned(Instant::now() + Duration::from_secs(6)));
    }
}
