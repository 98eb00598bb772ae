use super::children_ever;
use crate::layout::ItemName;
use docent_core::{Stat, planted};
use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// Number of foreign items in a row from which the queue counts as that of another program.
const LIMIT: usize = 10;

/// Items that this process leaves alone: items that it cannot decode, for a while, and items that could not
/// be moved to the dead letters, permanently. Also counts items of another format.
#[derive(Default)]
pub(crate) struct SkippedItems(Mutex<Items>);

#[derive(Default)]
struct Items {
    /// Transaction that created the folder of the items. In a new folder, names are reused.
    folder: i64,
    by_name: HashMap<String, SkippedItem>,
    /// Items that this process took in a row, none of which has the format of the queue in any version. No
    /// other consumer could decode them either, and what they mean is unknown here.
    foreign: Vec<ForeignItem>,
}

struct SkippedItem {
    /// Transaction that created the item.
    czxid: i64,
    /// Time since which other consumers could take the item.
    since: Instant,
    /// `None` for permanently.
    until: Option<Instant>,
    patience: Duration,
    /// Number of times that the item had been handed out.
    handed_out: u32,
    /// Number of claims of the item when this process last moved to the end of the line of idle consumers
    /// because of it; `None` after the item was taken again.
    passed_on: Option<u32>,
}

#[derive(Debug, Clone)]
struct ForeignItem {
    name: String,
    /// Transaction that created the item.
    czxid: i64,
    detail: String,
}

/// Queue whose items have another format.
#[derive(Debug, thiserror::Error)]
#[error(
    "take: {path:?} contains items of another format: none of {LIMIT} items in a row is an item of this queue, \
     beginning with {:?} ({}); these items stay in the queue", .first.name, .first.detail
)]
pub(crate) struct ForeignFormat {
    path: String,
    first: ForeignItem,
}

impl SkippedItems {
    fn items(&self) -> MutexGuard<'_, Items> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Leaves an item alone for `patience`, if it is left alone for the first time, or was handed to another
    /// consumer since. Otherwise returns for how long other consumers could take it. `handed_out` is the
    /// number of earlier deliveries.
    pub(crate) fn skip(
        &self,
        name: &str,
        item: &Stat,
        handed_out: u32,
        patience: Duration,
    ) -> Option<Duration> {
        let (now, czxid) = (Instant::now(), item.czxid);
        if let Some(since) = self.skipped_since(name, czxid, handed_out) {
            return Some(now.duration_since(since));
        }
        let until = now.checked_add(patience);
        // The process rejoins the line at its end, or is not in the line.
        let passed_on = Some(children_ever(item));
        self.insert(name, SkippedItem { czxid, since: now, until, patience, handed_out, passed_on });
        None
    }

    /// Returns the time since which other consumers could take an item that is left alone; `None` for other
    /// items.
    fn skipped_since(&self, name: &str, czxid: i64, handed_out: u32) -> Option<Instant> {
        let items = self.items();
        let is_same = |item: &&SkippedItem| {
            item.czxid == czxid && (handed_out <= item.handed_out || planted!(BuriedBesideOthers))
        };
        items.by_name.get(name).filter(is_same).map(|item| item.since)
    }

    fn insert(&self, name: &str, item: SkippedItem) {
        self.items().by_name.insert(name.to_owned(), item);
    }

    /// Records which items other consumers can take now. The time of all other items starts again.
    pub(crate) fn note_free(&self, is_free: impl Fn(&str) -> bool) {
        let now = Instant::now();
        let mut items = self.items();
        for (_, item) in items.by_name.iter_mut().filter(|(name, _)| !is_free(name)) {
            item.passed_on = None;
            if item.until.is_some() && !planted!(BuriedBesideOthers) {
                (item.since, item.until) = (now, now.checked_add(item.patience));
            }
        }
    }

    /// Returns true once each time that an item which is left alone here becomes free: another consumer in
    /// the line then has to check it. `claims` is the number of the item's claims so far.
    pub(crate) fn pass_on(&self, name: &str, claims: u32) -> bool {
        let mut items = self.items();
        let item = items.by_name.get_mut(name);
        item.is_some_and(|item| item.passed_on.replace(claims) != Some(claims))
    }

    /// Leaves an item alone permanently.
    pub(crate) fn skip_for_good(&self, name: &str, item: &Stat) {
        self.skip_until(name, item, None, Duration::MAX);
    }

    /// Leaves an item alone for `patience`, whether or not other consumers can take it.
    pub(crate) fn skip_for(&self, name: &str, item: &Stat, patience: Duration) {
        self.skip_until(name, item, Instant::now().checked_add(patience), patience);
    }

    fn skip_until(&self, name: &str, item: &Stat, until: Option<Instant>, patience: Duration) {
        let (since, passed_on) = (Instant::now(), Some(children_ever(item)));
        self.insert(
            name,
            SkippedItem { czxid: item.czxid, since, until, patience, handed_out: 0, passed_on },
        );
    }

    /// Forgets items that are not `listed` in this folder.
    pub(crate) fn retain_listed(&self, folder: i64, listed: &[ItemName]) {
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

    /// Returns whether an item is left alone now.
    pub(crate) fn contains(&self, name: &str, now: Instant) -> bool {
        let items = self.items();
        items.by_name.get(name).is_some_and(|item| item.until.is_none_or(|until| until > now))
    }

    /// Returns the time at which the next item is no longer left alone.
    pub(crate) fn next(&self, now: Instant) -> Option<Instant> {
        self.items().by_name.values().filter_map(|item| item.until).filter(|until| *until > now).min()
    }

    /// Adds an item to the row of foreign items. Returns true if the row is long enough that its items must
    /// stay in the queue.
    pub(crate) fn note_foreign(&self, name: &str, czxid: i64, detail: &str) -> bool {
        let foreign = &mut self.items().foreign;
        let is_known = foreign.iter().any(|item| item.name == name && item.czxid == czxid);
        if !is_known && foreign.len() < LIMIT {
            foreign.push(ForeignItem { name: name.to_owned(), czxid, detail: detail.to_owned() });
        }
        foreign.len() >= LIMIT
    }

    /// Ends the row of foreign items, because an item of the queue was found.
    pub(crate) fn end_foreign(&self) {
        self.items().foreign.clear();
    }

    /// Returns the error for the queue at `path` if the row of foreign items is long enough.
    pub(crate) fn foreign_format(&self, path: &str) -> Option<ForeignFormat> {
        let foreign = &self.items().foreign;
        let first = foreign.first().filter(|_| foreign.len() >= LIMIT)?.clone();
        Some(ForeignFormat { path: path.to_owned(), first })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATIENCE: Duration = Duration::from_secs(10);

    /// Creates one item that is left alone, and had been handed out and claimed twice.
    fn skipping_one() -> SkippedItems {
        let skipped = SkippedItems::default();
        let now = Instant::now();
        let (until, passed_on) = (Some(now + PATIENCE), Some(2));
        let item = SkippedItem { czxid: 1, since: now, until, patience: PATIENCE, handed_out: 2, passed_on };
        skipped.insert("item", item);
        skipped
    }

    #[test]
    fn an_item_is_passed_on_once_for_each_time_that_it_was_taken() {
        let skipped = skipping_one();
        assert!(!skipped.pass_on("item", 2) && !skipped.pass_on("another", 7));
        // The item was claimed and released between two checks.
        assert!(skipped.pass_on("item", 3) && !skipped.pass_on("item", 3));
        // The claims of the item are not counted, and a claim was seen.
        skipped.note_free(|_| true);
        assert!(!skipped.pass_on("item", 3));
        skipped.note_free(|_| false);
        assert!(skipped.pass_on("item", 3) && !skipped.pass_on("item", 3));
    }

    #[tokio::test(start_paused = true)]
    async fn the_time_for_which_an_item_is_skipped_counts_only_while_it_is_free() {
        let skipped = skipping_one();
        let skipped_for = || skipped.skipped_since("item", 1, 2).map(|since| since.elapsed());
        tokio::time::advance(PATIENCE / 2).await;
        assert_eq!((skipped_for(), skipped.contains("item", Instant::now())), (Some(PATIENCE / 2), true));
        skipped.note_free(|_| false);
        tokio::time::advance(PATIENCE / 2).await;
        skipped.note_free(|_| true);
        assert_eq!((skipped_for(), skipped.contains("item", Instant::now())), (Some(PATIENCE / 2), true));
        tokio::time::advance(PATIENCE / 2).await;
        assert_eq!((skipped_for(), skipped.contains("item", Instant::now())), (Some(PATIENCE), false));
        // The item was handed to another consumer meanwhile, or is another item.
        assert_eq!((skipped.skipped_since("item", 1, 3), skipped.skipped_since("item", 2, 2)), (None, None));
    }

    #[test]
    fn only_different_items_in_a_row_count() {
        let skipped = SkippedItems::default();
        let add = |number: usize| skipped.note_foreign(&format!("item-{number}"), 1, "no item");
        for _ in 0..2 {
            assert!(!(0..LIMIT - 1).any(add) && skipped.foreign_format("/q").is_none());
        }
        skipped.end_foreign();
        assert!(!(0..LIMIT - 1).any(add) && add(LIMIT));
        let error = skipped.foreign_format("/q").unwrap().to_string();
        assert!(error.contains("\"/q\"") && error.contains("\"item-0\" (no item)"), "{error}");
        assert!(add(0), "items stay in the queue from now on, also those that were seen before");
        skipped.end_foreign();
        assert!(skipped.foreign_format("/q").is_none());
    }
}
