use super::{Aside, Backlog, ClaimSize, Desk, HandOutSize, Items, OwnClaims};
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
    /// How many items there may be.
    pub(crate) capacity: Option<usize>,
    /// How often an item is handed out.
    pub(crate) max_deliveries: Option<u32>,
    /// How many items are claimed in one step for a stream.
    pub(crate) prefetch: usize,
    /// How long items are left to others that cannot be decoded here.
    pub(crate) undecodable_after: Duration,
    /// Shortest and longest delay of items that are given back.
    pub(crate) redelivery: (Duration, Duration),
}

impl Limits {
    /// Delay of an item that is given back after so many hand-outs.
    pub(crate) fn delay(&self, deliveries: Option<u32>) -> Duration {
        let (shortest, longest) = self.redelivery;
        let doublings = deliveries.unwrap_or(1).saturating_sub(1).min(31);
        shortest.saturating_mul(1 << doublings).min(longest)
    }
}

/// A queue without regard to what its items are.
pub(crate) struct Store {
    pub(crate) client: Client,
    pub(crate) path: String,
    pub(crate) paths: Arc<Paths>,
    /// Line of the consumers that found nothing.
    pub(crate) idle: Line,
    /// In `ordered` mode, the lock of the consumers.
    pub(crate) lock: Option<Line>,
    pub(crate) limits: Limits,
    /// Its gauges, where it has a name in metrics.
    gauges: Option<QueueGauges>,
    /// Items at the servers.
    pub(crate) items: Items,
    /// Items that this process leaves alone.
    pub(crate) aside: Aside,
    /// Claims of this process.
    pub(crate) own: OwnClaims,
    /// The last listing, while the task that claims rests or does not run.
    pub(crate) backlog: Mutex<Backlog>,
    /// Calls of this process that take items, and items that are claimed for them.
    pub(crate) desk: Desk,
    /// Set when the folder of the dead letters is known to be there.
    pub(crate) has_dead: AtomicBool,
    /// Size of the next claim.
    pub(crate) claim_size: ClaimSize,
    /// Size of the next hand-out of items that were claimed ahead.
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
            aside: Aside::default(),
            own: OwnClaims::default(),
            backlog: Mutex::default(),
            desk: Desk::default(),
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

    /// True when an item that is given back for later says so itself, so that no claim is kept for that.
    pub(crate) fn has_delays(&self) -> bool {
        self.lock.is_none() && self.paths.has_delays()
    }

    /// The time of day of the client's clock, in milliseconds since the Unix epoch.
    pub(crate) fn time_of_day(&self) -> u64 {
        since_1970_ms(time_of_day(&self.client))
    }

    /// Tells how many items there are.
    pub(crate) fn tell_depth(&self, items: usize) {
        if let Some(gauges) = &self.gauges {
            gauges.depth(items);
        }
    }

    /// Tells since when an item has been there that was the first.
    pub(crate) fn tell_head(&self, since: SystemTime) {
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
