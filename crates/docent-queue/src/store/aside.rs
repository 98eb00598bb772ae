use super::children_ever;
use crate::layout::ItemName;
use docent_core::{Stat, planted};
use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// Items that this process leaves alone: those that it cannot decode, for a while, and those that could not
/// be moved to the dead letters, for good.
#[derive(Default)]
pub(crate) struct Aside(Mutex<Items>);

#[derive(Default)]
struct Items {
    /// The transaction that made the folder of the items: in another folder names are used again.
    folder: i64,
    by_name: HashMap<String, SetAside>,
}

struct SetAside {
    /// The transaction that made the item.
    czxid: i64,
    /// Time since which others could take the item.
    since: Instant,
    /// `None` for good.
    until: Option<Instant>,
    patience: Duration,
    /// Number of times that it had been handed out.
    handed_out: u32,
    /// Number of its claims when this process last went behind all others in the line of idle consumers for
    /// it; `None` since it was taken again.
    passed_on: Option<u32>,
}

impl Aside {
    fn items(&self) -> MutexGuard<'_, Items> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Leaves an item alone for `patience`, if that is the first time it is left alone, or another consumer
    /// was handed it since; else returns for how long others could take it. `handed_out` is the number of its
    /// hand-outs before this one.
    pub(crate) fn leave(
        &self,
        name: &str,
        item: &Stat,
        handed_out: u32,
        patience: Duration,
    ) -> Option<Duration> {
        let (now, czxid) = (Instant::now(), item.czxid);
        if let Some(since) = self.left_since(name, czxid, handed_out) {
            return Some(now.duration_since(since));
        }
        let until = now.checked_add(patience);
        // The process rejoins the line at its end, or is not in it.
        let passed_on = Some(children_ever(item));
        self.insert(name, SetAside { czxid, since: now, until, patience, handed_out, passed_on });
        None
    }

    /// Time since which others could take an item that is left alone; `None` for other items.
    fn left_since(&self, name: &str, czxid: i64, handed_out: u32) -> Option<Instant> {
        let items = self.items();
        let is_same = |aside: &&SetAside| {
            aside.czxid == czxid && (handed_out <= aside.handed_out || planted!(BuriedBesideOthers))
        };
        items.by_name.get(name).filter(is_same).map(|aside| aside.since)
    }

    fn insert(&self, name: &str, aside: SetAside) {
        self.items().by_name.insert(name.to_owned(), aside);
    }

    /// Notes which items can be taken by others now. For those that cannot the time begins again.
    pub(crate) fn note_free(&self, is_free: impl Fn(&str) -> bool) {
        let now = Instant::now();
        let mut items = self.items();
        for (_, aside) in items.by_name.iter_mut().filter(|(name, _)| !is_free(name)) {
            aside.passed_on = None;
            if aside.until.is_some() && !planted!(BuriedBesideOthers) {
                (aside.since, aside.until) = (now, now.checked_add(aside.patience));
            }
        }
    }

    /// True once for each time that an item became free that is left alone here: then another consumer in the
    /// line has to look at it. `claims` is the number of its claims so far.
    pub(crate) fn pass_on(&self, name: &str, claims: u32) -> bool {
        let mut items = self.items();
        let aside = items.by_name.get_mut(name);
        aside.is_some_and(|aside| aside.passed_on.replace(claims) != Some(claims))
    }

    /// Leaves an item alone for good.
    pub(crate) fn leave_for_good(&self, name: &str, item: &Stat) {
        self.leave_until(name, item, None, Duration::MAX);
    }

    /// Leaves an item alone for `patience`, whatever others do.
    pub(crate) fn leave_for(&self, name: &str, item: &Stat, patience: Duration) {
        self.leave_until(name, item, Instant::now().checked_add(patience), patience);
    }

    fn leave_until(&self, name: &str, item: &Stat, until: Option<Instant>, patience: Duration) {
        let (since, passed_on) = (Instant::now(), Some(children_ever(item)));
        self.insert(name, SetAside { czxid: item.czxid, since, until, patience, handed_out: 0, passed_on });
    }

    /// Forgets items that are not `listed` in this folder.
    pub(crate) fn keep_only(&self, folder: i64, listed: &[ItemName]) {
        let mut items = self.items();
        if items.folder != folder {
            items.by_name.clear();
            items.folder = folder;
        }
        if !items.by_name.is_empty() {
            let listed: HashSet<_> = listed.iter().map(|item| item.text.as_str()).collect();
            items.by_name.retain(|name, _| listed.contains(name.as_str()));
        }
    }

    /// True for an item that is left alone now.
    pub(crate) fn has(&self, name: &str, now: Instant) -> bool {
        let items = self.items();
        items.by_name.get(name).is_some_and(|aside| aside.until.is_none_or(|until| until > now))
    }

    /// Time at which the next item is not left alone any more.
    pub(crate) fn next(&self, now: Instant) -> Option<Instant> {
        self.items().by_name.values().filter_map(|aside| aside.until).filter(|until| *until > now).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATIENCE: Duration = Duration::from_secs(10);

    /// One item that is left alone, and had been handed out and claimed twice.
    fn one() -> Aside {
        let aside = Aside::default();
        let now = Instant::now();
        let (until, passed_on) = (Some(now + PATIENCE), Some(2));
        let item = SetAside { czxid: 1, since: now, until, patience: PATIENCE, handed_out: 2, passed_on };
        aside.insert("item", item);
        aside
    }

    #[test]
    fn an_item_is_passed_on_once_for_each_time_that_it_was_taken() {
        let aside = one();
        assert!(!aside.pass_on("item", 2) && !aside.pass_on("another", 7));
        // Its claim came and went between two looks.
        assert!(aside.pass_on("item", 3) && !aside.pass_on("item", 3));
        // Its claims are not counted, and one was seen.
        aside.note_free(|_| true);
        assert!(!aside.pass_on("item", 3));
        aside.note_free(|_| false);
        assert!(aside.pass_on("item", 3) && !aside.pass_on("item", 3));
    }

    #[tokio::test(start_paused = true)]
    async fn the_time_for_which_an_item_is_left_to_others_counts_while_they_can_take_it() {
        let aside = one();
        let left_for = || aside.left_since("item", 1, 2).map(|since| since.elapsed());
        tokio::time::advance(PATIENCE / 2).await;
        assert_eq!((left_for(), aside.has("item", Instant::now())), (Some(PATIENCE / 2), true));
        aside.note_free(|_| false);
        tokio::time::advance(PATIENCE / 2).await;
        aside.note_free(|_| true);
        assert_eq!((left_for(), aside.has("item", Instant::now())), (Some(PATIENCE / 2), true));
        tokio::time::advance(PATIENCE / 2).await;
        assert_eq!((left_for(), aside.has("item", Instant::now())), (Some(PATIENCE), false));
        // Another consumer was handed it meanwhile, or it is another item.
        assert_eq!((aside.left_since("item", 1, 3), aside.left_since("item", 2, 2)), (None, None));
    }
}
