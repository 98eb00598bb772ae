use super::backlog::until_then;
use super::{Backlog, Dispatcher, Items, Listing, SkippedItems};
use crate::layout::{ItemName, Paths, Turns};
use crate::telemetry::QueueGauges;
use docent_core::recipe::{Hold, Line, since_1970_ms, time_of_day};
use docent_core::{Client, Node, Stat};
use std::collections::HashSet;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// Maximum number of items that are claimed in one write.
pub(crate) const MOST: usize = 1000;

/// Limits of a queue.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    /// Maximum number of items.
    pub(crate) capacity: Option<usize>,
    /// Maximum number of deliveries of an item.
    pub(crate) max_deliveries: Option<u32>,
    /// Number of items that are claimed in one step for a stream.
    pub(crate) prefetch: usize,
    /// Time for which items that this process cannot decode are left to other consumers.
    pub(crate) undecodable_after: Duration,
    /// Shortest and longest delay of items that are given back.
    pub(crate) redelivery: (Duration, Duration),
}

impl Limits {
    /// Returns the delay of an item that is given back after `deliveries` deliveries.
    pub(crate) fn delay(&self, deliveries: Option<u32>) -> Duration {
        let (shortest, longest) = self.redelivery;
        let doublings = deliveries.unwrap_or(1).saturating_sub(1).min(31);
        shortest.saturating_mul(1 << doublings).min(longest)
    }
}

/// A queue of encoded items.
pub(crate) struct Store {
    pub(crate) client: Client,
    pub(crate) path: String,
    pub(crate) paths: Arc<Paths>,
    /// Line of the consumers that found no item.
    pub(crate) idle: Line,
    /// Lock of the consumers in `ordered` mode.
    pub(crate) lock: Option<Line>,
    pub(crate) limits: Limits,
    pub(crate) gauges: QueueGauges,
    /// Items at the servers.
    pub(crate) items: Items,
    /// Items that this process leaves alone, and items of another format.
    pub(crate) skipped: SkippedItems,
    /// Claims of this process.
    pub(crate) own: OwnClaims,
    /// Last listing, while the claiming task rests or is not running.
    pub(crate) backlog: Mutex<Backlog>,
    /// Calls of this process that take items, and items that are claimed for them.
    pub(crate) dispatcher: Dispatcher,
    /// Whether the folder of the dead letters is known to exist.
    pub(crate) has_dead: AtomicBool,
    /// Maximum number of items that the next write claims; [`MOST`] at first.
    ///
    /// Claims whose items cannot be read are given back, and the next write claims half as many. Therefore an
    /// unreadable item does not block the items before it, and a slow connection gets as many items as it can
    /// transfer. Each claim that is read doubles the number again. While the number is below [`MOST`], claims
    /// do not count as deliveries; otherwise items that no consumer got would use up their deliveries.
    pub(crate) claim_size: BatchSize,
    /// Number of items of a stream that one write hands out; 1 at first.
    ///
    /// An item is counted as handed out before its consumer has it, so that an item that crashes the process
    /// is counted. A write for each item would cost as much as its acknowledgement. Therefore a process
    /// starts with one item, and each write hands out twice as many as the last one. An item that crashes the
    /// process is then the first item of the restarted process, and the items behind it are counted wrongly
    /// at most once. If no call asks for an item in time, the number starts at one again.
    pub(crate) hand_out_size: BatchSize,
}

impl Store {
    pub(crate) fn new(
        client: Client,
        path: String,
        paths: Paths,
        idle: Line,
        lock: Option<Line>,
        limits: Limits,
        gauges: QueueGauges,
    ) -> Self {
        let paths = Arc::new(paths);
        Self {
            items: Items::new(&client, &path, &paths, limits.capacity),
            skipped: SkippedItems::default(),
            own: OwnClaims::default(),
            backlog: Mutex::default(),
            dispatcher: Dispatcher::default(),
            client,
            path,
            paths,
            idle,
            lock,
            limits,
            gauges,
            has_dead: AtomicBool::new(false),
            claim_size: BatchSize::new(MOST),
            hand_out_size: BatchSize::new(1),
        }
    }

    /// Returns whether the delay of a returned item is stored in its name, so that no claim has to be kept
    /// for the delay.
    pub(crate) fn has_delays(&self) -> bool {
        self.lock.is_none() && self.paths.has_delays()
    }

    /// Returns the time of day of the client's clock, in milliseconds since the Unix epoch.
    pub(crate) fn time_of_day(&self) -> u64 {
        since_1970_ms(time_of_day(&self.client))
    }

    /// Records which items exist, and which of them can be taken.
    pub(crate) fn note(&self, listing: &Listing) {
        if listing.folder == 0 {
            return;
        }
        self.skipped.retain_listed(listing.folder, &listing.items);
        match &self.lock {
            Some(_) => {
                let first = self.first_in_turn(listing);
                self.skipped.note_free(|name| first.is_some_and(|first| first.text == name));
            }
            None => self.skipped.note_free(|name| !listing.claimed.contains(name)),
        }
    }

    /// Returns which items `listing` offers to this process now. With `later`, delayed items count as well if
    /// no other item is free.
    pub(crate) fn prospect(&self, listing: &Listing, later: bool) -> Prospect {
        let (clock, now) = (self.time_of_day(), Instant::now());
        let mut free: Vec<_> = match &self.lock {
            // In ordered mode only the first item may be taken.
            Some(_) => self.first_in_turn(listing).into_iter().collect(),
            None => listing.items.iter().filter(|item| !listing.claimed.contains(&item.text)).collect(),
        };
        let is_due = |item: &ItemName| item.due.is_none_or(|due| due <= clock);
        if !later || free.iter().any(|item| is_due(item)) {
            free.retain(|item| is_due(item));
        }
        if free.is_empty() {
            Prospect::Nothing
        } else if free.iter().all(|item| self.skipped.contains(&item.text, now)) {
            Prospect::Refused(free.into_iter().map(|item| item.text.clone()).collect())
        } else {
            Prospect::Item
        }
    }

    /// Returns the item that would be handed out first now.
    fn first_in_turn<'a>(&self, listing: &'a Listing) -> Option<&'a ItemName> {
        let first = self.turns(listing).ready.into_iter().next()?;
        listing.items.iter().find(|item| **item == first)
    }

    /// Returns the items whose time has come, whether or not they are claimed or left to other consumers.
    pub(crate) fn turns(&self, listing: &Listing) -> Turns {
        Turns::at(self.time_of_day(), listing.items.iter().cloned())
    }

    /// Returns when to check for a delayed item that may be handed out at the time of day `due`.
    pub(crate) fn check_at(&self, due: u64) -> Instant {
        Instant::now() + until_then(due, self.time_of_day())
    }
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Store").field("path", &self.path).field("paths", &self.paths).finish_non_exhaustive()
    }
}

/// Items that a listing of the queue offers to this process.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Prospect {
    /// There is an item that this process may take.
    Item,
    /// There are free items, but this process leaves all of them to other consumers.
    Refused(Vec<String>),
    /// There is no free item.
    Nothing,
}

/// An item that this process has claimed for a call.
#[derive(Debug)]
pub(crate) struct ClaimedItem {
    pub(crate) hold: Hold,
    pub(crate) name: String,
    /// Node of the item, as read after the claim.
    pub(crate) node: Node,
    /// Whether the item was handed out, which is counted.
    pub(crate) handed_out: bool,
    /// Number of deliveries that were counted since the node was read.
    pub(crate) counted_since: u32,
    /// Record of the own claim; `None` for an item under the lock of the ordered mode.
    pub(crate) own: Option<OwnClaim>,
}

impl ClaimedItem {
    /// Returns the number of deliveries, including this one if it is already counted. Returns `None` if
    /// deliveries are not counted.
    pub(crate) fn deliveries(&self, paths: &Paths) -> Option<u32> {
        paths.counts().then(|| {
            let base = paths.unframe(&self.node.data).map_or(0, |(base, _)| base);
            let counted = children_ever(&self.node.stat).saturating_add(self.counted_since);
            counted.saturating_add_signed(base)
        })
    }

    /// Returns the number of earlier deliveries; 0 if deliveries are not counted.
    pub(crate) fn handed_out_before(&self, paths: &Paths) -> u32 {
        self.deliveries(paths).unwrap_or(0).saturating_sub(u32::from(self.handed_out))
    }
}

/// Returns the number of children that a node ever had. For an item, this is the number of counted
/// deliveries: each created and deleted one child.
pub(crate) fn children_ever(node: &Stat) -> u32 {
    // `cversion` counts created and deleted children, so half of the sum is the number of claims (decision
    // 8).
    let children = u32::try_from(node.num_children).unwrap_or(u32::MAX);
    node.cversion.cast_unsigned().wrapping_add(children) / 2
}

/// Names of the items that this process has claimed. Other claims show that other processes take items as
/// well.
#[derive(Debug, Default, Clone)]
pub(crate) struct OwnClaims(Arc<Mutex<HashSet<String>>>);

impl OwnClaims {
    fn names(&self) -> MutexGuard<'_, HashSet<String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records a claim.
    pub(crate) fn note(&self, name: &str) -> OwnClaim {
        self.names().insert(name.to_owned());
        OwnClaim { claims: self.clone(), name: name.to_owned() }
    }

    /// Returns whether the claim belongs to this process.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.names().contains(name)
    }
}

/// Record that this process has claimed an item.
///
/// # On drop
/// The record is removed: if the claim still exists, it counts as another process's.
#[derive(Debug)]
pub(crate) struct OwnClaim {
    claims: OwnClaims,
    name: String,
}

impl Drop for OwnClaim {
    fn drop(&mut self) {
        self.claims.names().remove(&self.name);
    }
}

/// Number of items for one write, which doubles with each success.
#[derive(Debug)]
pub(crate) struct BatchSize(AtomicUsize);

impl BatchSize {
    fn new(size: usize) -> Self {
        Self(AtomicUsize::new(size))
    }

    pub(crate) fn get(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }

    /// Sets the number for the next write; at least one.
    pub(crate) fn set(&self, size: usize) {
        self.0.store(size.max(1), Ordering::Relaxed);
    }

    /// Doubles the number, up to `limit`.
    pub(crate) fn grow(&self, limit: usize) {
        self.set((2 * self.get()).min(limit));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_size_doubles_up_to_the_limit_and_is_at_least_one() {
        let size = BatchSize::new(1);
        let sizes: Vec<_> = (0..5)
            .map(|_| {
                let now = size.get();
                size.grow(6);
                now
            })
            .collect();
        assert_eq!(sizes, [1, 2, 4, 6, 6]);
        for low in [0, 1] {
            size.set(low);
            assert_eq!(size.get(), 1);
        }
        size.grow(0);
        assert_eq!(size.get(), 1);
    }

    #[test]
    fn a_batch_size_returns_to_its_start_after_enough_growth() {
        // Claims of the full size alone count as deliveries.
        let size = BatchSize::new(MOST);
        size.set(size.get() / 2);
        assert!(size.get() < MOST);
        (0..10).for_each(|_| size.grow(MOST));
        assert_eq!(size.get(), MOST);
    }

    #[test]
    fn a_claim_is_known_while_its_note_exists() {
        let claims = OwnClaims::default();
        let (one, other) = (claims.note("one"), claims.note("other"));
        assert!(claims.has("one") && claims.has("other") && !claims.has("third"));
        drop(one);
        assert!(!claims.has("one") && claims.has("other"));
        drop(other);
    }
}
