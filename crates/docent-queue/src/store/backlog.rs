use super::Aside;
use crate::layout::{ItemName, Turns};
use std::collections::{HashSet, VecDeque};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::time::Instant;

/// How long others are expected to claim the same items, once they did.
const CONTENDED: Duration = Duration::from_millis(500);
/// How long a listing is used at least while items of it are left. An item that somebody gave back is in its
/// place again after that.
const FRESH: Duration = Duration::from_millis(500);
/// How long it is used for each of its items, so that long listings are rare: for 100,000 items 5 s.
const FRESH_PER_ITEM: Duration = Duration::from_micros(50);
/// Items up to which a new listing costs less than a claim in vain.
const SHORT: usize = 200;
/// Items from which on a listing costs more than several claims in vain.
const LONG: usize = 2_000;
/// Items that are looked at to find out how many of the first are taken.
const MARKS: usize = 11;

/// Longest wait for the time of an item by the process's clock, which may be set meanwhile.
const LONGEST: Duration = Duration::from_secs(30);

/// The items that may be free, as the last listing showed them and attempts since: first in first.
#[derive(Debug, Default)]
pub(crate) struct Backlog {
    ready: VecDeque<ItemName>,
    /// Time at which an item may be handed out that may not be yet.
    next: Option<Instant>,
    listed: Option<Listed>,
    /// True when an item came back since then.
    pub(crate) came_back: bool,
    /// Time until which others are expected to claim the same items.
    contended: Option<Instant>,
}

/// The last listing.
#[derive(Debug, Clone, Copy)]
struct Listed {
    at: Instant,
    /// Number of items that were free.
    items: usize,
}

impl Listed {
    /// For how long it is used, for what it costs.
    fn worth(self) -> Duration {
        FRESH_PER_ITEM.saturating_mul(u32::try_from(self.items).unwrap_or(u32::MAX))
    }
}

impl Backlog {
    /// True when it is time to list again, although there may be items left.
    pub(crate) fn is_old(&self, now: Instant) -> bool {
        self.listed.is_none_or(|listed| now.duration_since(listed.at) >= FRESH.max(listed.worth()))
    }

    /// True when it is time to list again because an item came back, or has its turn.
    pub(crate) fn has_more(&self, now: Instant) -> bool {
        (self.came_back || self.has_turned(now)) && self.may_be_listed(now)
    }

    /// True when it may be listed again for the sake of one item.
    fn may_be_listed(&self, now: Instant) -> bool {
        self.is_short() || self.listed.is_none_or(|listed| now.duration_since(listed.at) >= listed.worth())
    }

    /// Notes that others claim the same items.
    pub(crate) fn contend(&mut self) {
        self.contended = Some(Instant::now() + CONTENDED);
    }

    /// True when others are expected to claim the same items.
    pub(crate) fn is_contended(&self, now: Instant) -> bool {
        self.contended.is_some_and(|until| now < until)
    }

    /// True when a new listing costs less than a claim in vain.
    fn is_short(&self) -> bool {
        self.ready.len() <= SHORT
    }

    /// True when a new listing costs more than several claims in vain.
    pub(crate) fn is_long(&self) -> bool {
        self.ready.len() >= LONG
    }

    /// Takes a listing: the items that are not `claimed`, and not left alone here.
    pub(crate) fn fill(
        &mut self,
        items: impl IntoIterator<Item = ItemName>,
        claimed: &HashSet<String>,
        aside: &Aside,
    ) {
        let now = Instant::now();
        let free = items.into_iter().filter(|item| !claimed.contains(&item.text));
        let turns = Turns::at(wall_clock(), free.filter(|item| !aside.has(&item.text, now)));
        self.ready = turns.ready.into();
        let due = turns.next.map(|due| now + until_then(due));
        self.next = [due, aside.next(now)].into_iter().flatten().min();
        self.listed = Some(Listed { at: now, items: self.ready.len() });
    }

    /// The first `count`.
    pub(crate) fn first(&self, count: usize) -> Vec<String> {
        self.ready.iter().take(count).map(|item| item.text.clone()).collect()
    }

    /// Forgets the item with this name: it is not free.
    pub(crate) fn forget(&mut self, name: &str) {
        let index = self.ready.iter().position(|item| item.text == name);
        index.map(|index| self.ready.remove(index));
    }

    /// Names of items from the first one on, each twice as far as the one before; none where a listing is
    /// cheaper.
    pub(crate) fn marks(&self) -> Vec<String> {
        let marks =
            (0..if self.is_long() { MARKS } else { 0 }).map_while(|power| self.ready.get(mark(power)));
        marks.map(|item| item.text.clone()).collect()
    }

    /// Forgets the items up to the last of the first `marks` that are all taken. Items are claimed in their
    /// order: those between two that are taken are taken, too, but for one that came back.
    pub(crate) fn forget_taken(&mut self, marks: &[String], is_taken: impl Fn(usize, &str) -> bool) {
        let taken = marks.iter().enumerate().take_while(|(index, mark)| is_taken(*index, mark)).count();
        if let Some(last) = taken.checked_sub(1) {
            self.taken(mark(last) + 1);
        }
    }

    /// Forgets the items that are `claimed`, as far as they are among the first `count` that are left.
    pub(crate) fn forget_claimed(&mut self, claimed: &HashSet<String>, count: usize) {
        let first = self.ready.len().min(claimed.len().saturating_add(count));
        let free: Vec<_> = self.ready.drain(..first).filter(|item| !claimed.contains(&item.text)).collect();
        free.into_iter().rev().for_each(|item| self.ready.push_front(item));
    }

    /// Forgets the first `count`: they are ours.
    pub(crate) fn taken(&mut self, count: usize) {
        self.ready.drain(..count.min(self.ready.len()));
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

/// Position of a mark: 0, 1, 3, 7 and so on.
fn mark(power: usize) -> usize {
    (1 << power) - 1
}

/// The process's clock, in milliseconds since the Unix epoch.
pub(crate) fn wall_clock() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(now.as_millis()).unwrap_or(u64::MAX)
}

fn until_then(due: u64) -> Duration {
    Duration::from_millis(due.saturating_sub(wall_clock())).min(LONGEST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn claimed_items_are_left_out_and_the_others_stay_in_order() {
        let names = [3, 1, 2, 0, 4].map(|number| format!("item-{number:010}"));
        let items = names.clone().into_iter().filter_map(|name| ItemName::parse(name, "item-"));
        let mut backlog = Backlog::default();
        assert!(backlog.is_old(Instant::now()) && backlog.first(1).is_empty());
        backlog.fill(items, &HashSet::from([names[3].clone()]), &Aside::default());
        assert!(!backlog.is_old(Instant::now()) && backlog.is_old(Instant::now() + FRESH));
        backlog.forget(&names[2]);
        assert_eq!(backlog.first(2), [names[1].clone(), names[0].clone()]);
        backlog.taken(1);
        backlog.forget_claimed(&HashSet::from([names[0].clone()]), 1);
        assert_eq!(backlog.first(9), [names[4].clone()]);
    }

    #[test]
    fn items_before_the_first_that_is_there_are_taken() {
        let names: Vec<_> = (0..3_000).map(|number| format!("item-{number:010}")).collect();
        let left_of = |taken: usize| {
            let mut backlog = Backlog::default();
            let items = names.iter().filter_map(|name| ItemName::parse(name.clone(), "item-"));
            backlog.fill(items, &HashSet::new(), &Aside::default());
            let marks = backlog.marks();
            assert_eq!(marks.last(), Some(&names[1023]));
            backlog.forget_taken(&marks, |_, mark| mark < names[taken].as_str());
            backlog.first(1).remove(0)
        };
        let firsts = [(0, 0), (1, 1), (2, 2), (3, 2), (63, 32), (64, 64), (1_023, 512), (1_500, 1_024)];
        for (taken, first) in firsts {
            assert_eq!(left_of(taken), names[first], "{taken}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_long_listing_is_used_longer() {
        let names = (0..100_000).map(|number| format!("item-{number:010}"));
        let mut backlog = Backlog::default();
        let items = names.filter_map(|name| ItemName::parse(name, "item-"));
        backlog.fill(items, &HashSet::new(), &Aside::default());
        for (later, is_due) in [(4, false), (5, true)] {
            let later = Instant::now() + Duration::from_secs(later);
            assert_eq!((backlog.is_old(later), backlog.may_be_listed(later)), (is_due, is_due));
        }
        backlog.taken(99_900);
        assert!(!backlog.is_old(Instant::now()) && backlog.may_be_listed(Instant::now()));
    }

    #[test]
    fn an_item_with_a_time_to_come_is_waited_for() {
        let name = format!("{}0000000000", ItemName::prefix("item-", 0, Some(wall_clock() + 5_000)));
        let mut backlog = Backlog::default();
        backlog.fill(ItemName::parse(name, "item-"), &HashSet::new(), &Aside::default());
        assert!(backlog.first(1).is_empty() && !backlog.has_turned(Instant::now()));
        assert!(backlog.has_turned(Instant::now() + Duration::from_secs(6)));
    }
}
