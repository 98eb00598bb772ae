use super::{Aside, LastListing};
use crate::layout::{ItemName, Turns};
use std::collections::HashSet;
use std::ops::{Deref, DerefMut};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::time::Instant;

/// How long a listing is used at least while items of it are left. An item that somebody gave back is in its
/// place again after that.
const FRESH: Duration = Duration::from_millis(500);
/// Longest wait for the time of an item by the process's clock, which may be set meanwhile.
const LONGEST: Duration = Duration::from_secs(30);

/// The items of a `Queue` that may be free: those of the `LastListing` that have their turn.
#[derive(Debug, Default)]
pub(crate) struct Backlog {
    ready: LastListing<ItemName>,
    /// Time at which an item may be handed out that may not be yet.
    next: Option<Instant>,
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
        self.ready.fill(turns.ready);
        let due = turns.next.map(|due| now + until_then(due));
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
    fn an_item_with_a_time_to_come_is_waited_for() {
        let name = format!("{}0000000000", ItemName::prefix("item-", 0, Some(wall_clock() + 5_000)));
        let mut backlog = Backlog::default();
        backlog.fill(ItemName::parse(name, "item-"), &HashSet::new(), &Aside::default());
        assert!(backlog.first(1).is_empty() && !backlog.has_turned(Instant::now()));
        assert!(backlog.has_turned(Instant::now() + Duration::from_secs(6)));
    }
}
