use std::collections::VecDeque;
use std::time::Duration;
use tokio::time::Instant;

/// How long a listing is used while items of it are left. An item that somebody gave back is in its place
/// again after that.
const FRESH: Duration = Duration::from_millis(500);

/// The items that may be free, as the last listing showed them and attempts since: first in first. Pure.
#[derive(Debug, Default)]
pub(crate) struct Backlog {
    names: VecDeque<String>,
    listed: Option<Instant>,
}

impl Backlog {
    /// True when it is time to list again, although there may be items left.
    pub(crate) fn is_old(&self, now: Instant) -> bool {
        self.listed.is_none_or(|listed| now.duration_since(listed) >= FRESH)
    }

    pub(crate) fn fill(&mut self, names: impl IntoIterator<Item = String>, now: Instant) {
        self.names = names.into_iter().collect();
        self.listed = Some(now);
    }

    /// The first `count`.
    pub(crate) fn first(&self, count: usize) -> Vec<String> {
        self.names.iter().take(count).cloned().collect()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// Forgets the one at `index`: it is not free.
    pub(crate) fn forget(&mut self, index: usize) {
        self.names.remove(index);
    }

    /// Forgets the first `count`: they are ours.
    pub(crate) fn taken(&mut self, count: usize) {
        self.names.drain(..count.min(self.names.len()));
    }

    /// Of the first items, keeps the ones that are `free`.
    pub(crate) fn keep(&mut self, free: &[bool]) {
        let mut free = free.iter();
        self.names.retain(|_| free.next().copied().unwrap_or(true));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_free_is_skipped_and_what_is_left_stays_in_order() {
        let now = Instant::now();
        let mut backlog = Backlog::default();
        assert!(backlog.is_old(now) && backlog.is_empty());
        backlog.fill(["a", "b", "c", "d", "e"].map(String::from), now);
        assert!(!backlog.is_old(now) && backlog.is_old(now + FRESH));
        backlog.forget(0);
        backlog.keep(&[false, true]);
        assert_eq!(backlog.first(2), ["c", "d"]);
        backlog.taken(2);
        assert_eq!(backlog.first(9), ["e"]);
    }
}
