use super::{Aside, LastListing, OwnClaims};
use crate::layout::{ItemName, Turns};
use std::collections::HashSet;
use std::ops::{Deref, DerefMut};
use std::time::Duration;
use tokio::time::Instant;

/// How long a listing is used at least while items of it are left. An item that somebody gave back is in its
/// place again after that.
const FRESH: Duration = Duration::from_millis(500);
/// How long a listing is good for the next claim that was made ahead of it. Others may take items meanwhile.
const AHEAD: Duration = Duration::from_millis(50);
/// Longest wait for the time of an item by the process's clock, which may be set meanwhile.
const LONGEST: Duration = Duration::from_secs(30);

/// The items of a `Queue` that may be free: those of the `LastListing` that have their turn.
#[derive(Debug, Default)]
pub(crate) struct Backlog {
    ready: LastListing<ItemName>,
    /// Time at which an item may be handed out that may not be yet.
    next: Option<Instant>,
    /// True when others had claimed items when they were listed.
    shared: bool,
    /// Time until which the listing, which was made ahead of a claim, is good for it.
    ahead: Option<Instant>,
    /// True when an item came back since then.
    pub(crate) came_back: bool,
}

impl Backlog {
    /// True when it is time to list again, although there may be items left.
    pub(crate) fn is_old(&self, now: Instant) -> bool {
        self.ready.is_old(now, FRESH)
    }

    /// True when it is time to list again because an item came back, or has its turn.
    pub(crate) fn has_more(&self, now: Instant) -> bool {
        (self.came_back || self.has_turned(now)) && self.ready.may_be_listed(now)
    }

    /// True when the listing may be relied on later, although others may change the queue meanwhile: a new
    /// one would cost much, or nobody else takes items. Where others do, one that they give back would be
    /// passed over.
    pub(crate) fn is_kept(&self, now: Instant) -> bool {
        self.is_long() || self.is_private(now) || self.ahead.is_some_and(|until| now < until)
    }

    /// True when nobody else takes items, as far as is known.
    fn is_private(&self, now: Instant) -> bool {
        !self.shared && !self.is_contended(now)
    }

    /// True when the next call will want a new listing, and there is likely to be something in it: there were
    /// several items.
    pub(crate) fn is_wanted_ahead(&self, now: Instant) -> bool {
        !self.is_long() && self.listed_items() > 1 && (self.is_empty() || !self.is_private(now))
    }

    /// Notes that the listing was made ahead of the next claim.
    pub(crate) fn listed_ahead(&mut self) {
        self.ahead = Some(Instant::now() + AHEAD);
    }

    /// True when the listing was made ahead of this claim, and is good for it.
    pub(crate) fn take_ahead(&mut self, now: Instant) -> bool {
        self.ahead.take().is_some_and(|until| now < until)
    }

    /// Takes a listing: the items that are not `claimed`, and not left alone here.
    pub(crate) fn fill(
        &mut self,
        items: impl IntoIterator<Item = ItemName>,
        claimed: &HashSet<String>,
        own: &OwnClaims,
        aside: &Aside,
        time_of_day: u64,
    ) {
        let now = Instant::now();
        let mut shared = false;
        let free = items.into_iter().filter(|item| {
            let is_free = !claimed.contains(&item.text);
            shared |= !is_free && !own.has(&item.text);
            is_free
        });
        let turns = Turns::at(time_of_day, free.filter(|item| !aside.has(&item.text, now)));
        self.ready.fill(turns.ready);
        (self.shared, self.ahead) = (shared, None);
        let due = turns.next.map(|due| now + until_then(due, time_of_day));
        self.next = [due, aside.next(now)].into_iter().flatten().min();
    }

    /// Forgets the items that are `claimed`, as far as they are among the first `count` that are left.
    pub(crate) fn forget_claimed(&mut self, claimed: &HashSet<String>, count: usize) {
        let first = claimed.len().saturating_add(count);
        self.ready.retain_first(first, |name| !claimed.contains(name));
    }

    /// Time at which an item of the listing may be handed out that could not be before.
    pub(crate) fn next(&self) -> Option<Instant> {
        self.next
    }

    /// True when such an item has its turn: the listing does not show it.
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

    /// Some time of day.
    const NOW: u64 = 1_000_000;

    #[test]
    fn claimed_items_are_left_out_and_the_others_stay_in_order() {
        let names = [3, 1, 2, 0, 4].map(|number| format!("item-{number:010}"));
        let items = names.clone().into_iter().filter_map(|name| ItemName::parse(name, "item-"));
        let mut backlog = Backlog::default();
        assert!(backlog.is_old(Instant::now()) && backlog.first(1).is_empty());
        let own = OwnClaims::default();
        backlog.fill(items, &HashSet::from([names[3].clone()]), &own, &Aside::default(), NOW);
        assert!(!backlog.is_old(Instant::now()) && backlog.is_old(Instant::now() + FRESH));
        backlog.forget(&names[2]);
        assert_eq!(backlog.first(2), [names[1].clone(), names[0].clone()]);
        backlog.taken(1);
        backlog.forget_claimed(&HashSet::from([names[0].clone()]), 1);
        assert_eq!(backlog.first(9), [names[4].clone()]);
    }

    #[test]
    fn a_short_listing_is_kept_while_nobody_else_takes_items() {
        let name = |number: u32| format!("item-{number:010}");
        let own = OwnClaims::default();
        let note = own.note(&name(0));
        let kept_with = |count: u32, claimed: &[u32]| {
            let mut backlog = Backlog::default();
            let items = (0..count).filter_map(|number| ItemName::parse(name(number), "item-"));
            let claimed = claimed.iter().copied().map(name).collect();
            backlog.fill(items, &claimed, &own, &Aside::default(), NOW);
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
    fn an_item_with_a_time_to_come_is_waited_for() {
        let name = format!("{}0000000000", ItemName::prefix("item-", 0, Some(NOW + 5_000)));
        let mut backlog = Backlog::default();
        let own = OwnClaims::default();
        backlog.fill(ItemName::parse(name, "item-"), &HashSet::new(), &own, &Aside::default(), NOW);
        assert!(backlog.first(1).is_empty() && !backlog.has_turned(Instant::now()));
        assert!(backlog.has_turned(Instant::now() + Duration::from_secs(6)));
    }
}
