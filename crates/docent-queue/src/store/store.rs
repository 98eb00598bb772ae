use super::{Backlog, ClaimSize, Dispatcher, ForeignItems, HandOutSize, Items, OwnClaims, SkippedItems};
use crate::layout::Paths;
use crate::telemetry::QueueGauges;
use docent_core::Client;
use docent_core::recipe::{Line, since_1970_ms, time_of_day};
use std::fmt;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

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
    /// Gauges of the queue, if it has a name in metrics.
    gauges: Option<QueueGauges>,
    /// Items at the servers.
    pub(crate) items: Items,
    /// Items that this process leaves alone.
    pub(crate) skipped: SkippedItems,
    /// Items of another format that this process took in a row.
    pub(crate) foreign: ForeignItems,
    /// Claims of this process.
    pub(crate) own: OwnClaims,
    /// Last listing, while the claiming task rests or is not running.
    pub(crate) backlog: Mutex<Backlog>,
    /// Calls of this process that take items, and items that are claimed for them.
    pub(crate) dispatcher: Dispatcher,
    /// Whether the folder of the dead letters is known to exist.
    pub(crate) has_dead: AtomicBool,
    /// Size of the next claim.
    pub(crate) claim_size: ClaimSize,
    /// Size of the next hand-out of items that were claimed in advance.
    pub(crate) hand_out_size: HandOutSize,
}

impl Store {
    pub(crate) fn new(
        client: Client,
        path: String,
        paths: Paths,
        idle: Line,
        lock: Option<Line>,
        limits: Limits,
        metrics_name: Option<String>,
    ) -> Self {
        let paths = Arc::new(paths);
        let gauges = metrics_name.map(|name| QueueGauges::new(&client, &name));
        Self {
            items: Items::new(&client, &path, &paths, limits.capacity),
            skipped: SkippedItems::default(),
            foreign: ForeignItems::default(),
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
            claim_size: ClaimSize::default(),
            hand_out_size: HandOutSize::default(),
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

    /// Reports the number of items to the metrics.
    pub(crate) fn report_depth(&self, items: usize) {
        if let Some(gauges) = &self.gauges {
            gauges.depth(items);
        }
    }

    /// Reports since when the first item has been in the queue to the metrics.
    pub(crate) fn report_head(&self, since: SystemTime) {
        if let Some(gauges) = &self.gauges {
            gauges.head(since);
        }
    }
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Store").field("path", &self.path).field("paths", &self.paths).finish_non_exhaustive()
    }
}
