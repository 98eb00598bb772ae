use std::sync::{Mutex, MutexGuard, PoisonError};

/// Number of foreign items in a row from which the queue counts as that of another program.
const LIMIT: usize = 10;

/// Items that this process took in a row, none of which has the format of the queue in any version. No other
/// consumer could decode them either, and what they mean is unknown here.
#[derive(Debug, Default)]
pub(crate) struct ForeignItems(Mutex<Vec<ForeignItem>>);

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
     beginning with {first:?} ({detail}); these items stay in the queue"
)]
pub(crate) struct ForeignFormat {
    path: String,
    first: String,
    detail: String,
}

impl ForeignItems {
    fn items(&self) -> MutexGuard<'_, Vec<ForeignItem>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds an item to the row. Returns true if the row is long enough that its items must stay in the queue.
    pub(crate) fn add(&self, name: &str, czxid: i64, detail: &str) -> bool {
        let mut items = self.items();
        let is_known = items.iter().any(|item| item.name == name && item.czxid == czxid);
        if !is_known && items.len() < LIMIT {
            items.push(ForeignItem { name: name.to_owned(), czxid, detail: detail.to_owned() });
        }
        items.len() >= LIMIT
    }

    /// Ends the row, because an item of the queue was found.
    pub(crate) fn clear(&self) {
        self.items().clear();
    }

    /// Returns the error for the queue at `path` if the row is long enough.
    pub(crate) fn error(&self, path: &str) -> Option<ForeignFormat> {
        let items = self.items();
        let ForeignItem { name: first, detail, .. } = items.first().filter(|_| items.len() >= LIMIT)?.clone();
        Some(ForeignFormat { path: path.to_owned(), first, detail })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_different_items_in_a_row_count() {
        let foreign = ForeignItems::default();
        let add = |number: usize| foreign.add(&format!("item-{number}"), 1, "no item");
        for _ in 0..2 {
            assert!(!(0..LIMIT - 1).any(add) && foreign.error("/q").is_none());
        }
        foreign.clear();
        assert!(!(0..LIMIT - 1).any(add) && add(LIMIT));
        let error = foreign.error("/q").unwrap().to_string();
        assert!(error.contains("\"/q\"") && error.contains("\"item-0\" (no item)"), "{error}");
        assert!(add(0), "items stay in the queue from now on, also those that were seen before");
        foreign.clear();
        assert!(foreign.error("/q").is_none());
    }
}
