use crate::layout::ItemName;
use docent_core::Stat;
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
    since: Instant,
    /// `None` for good.
    until: Option<Instant>,
}

impl Aside {
    fn items(&self) -> MutexGuard<'_, Items> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Leaves an item alone until a time, if that is the first time it is left alone; else returns for how
    /// long ago that was.
    pub(crate) fn leave(&self, name: &str, item: &Stat, patience: Duration) -> Option<Duration> {
        let now = Instant::now();
        let mut items = self.items();
        match items.by_name.get(name) {
            Some(aside) if aside.czxid == item.czxid => Some(now.duration_since(aside.since)),
            _ => {
                let until = now.checked_add(patience);
                let aside = SetAside { czxid: item.czxid, since: now, until };
                items.by_name.insert(name.to_owned(), aside);
                None
            }
        }
    }

    /// Leaves an item alone for good.
    pub(crate) fn leave_for_good(&self, name: &str, item: &Stat) {
        let aside = SetAside { czxid: item.czxid, since: Instant::now(), until: None };
        self.items().by_name.insert(name.to_owned(), aside);
    }

    /// Forgets items that are not `listed` in this folder; none where there is no folder, which is 0.
    pub(crate) fn keep_only(&self, folder: i64, listed: &[ItemName]) {
        if folder == 0 {
            return;
        }
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
