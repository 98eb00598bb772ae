use super::{Aside, Desk, Items};
use crate::layout::Paths;
use docent_core::Client;
use docent_core::recipe::{Line, gauge};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
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
    /// Its name in metrics.
    metrics_name: Option<String>,
    /// Items at the servers.
    pub(crate) items: Items,
    /// Items that this process leaves alone.
    pub(crate) aside: Aside,
    /// Calls of this process that take items, and items that are claimed for them.
    pub(crate) desk: Desk,
    /// Set when the folder of the dead letters is known to be there.
    pub(crate) has_dead: AtomicBool,
    /// Set while the next item may not be read: claims do not count as hand-outs until one could be.
    pub(crate) unreadable: AtomicBool,
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
        Self {
            items: Items::new(&client, &path, &paths, limits.capacity),
            aside: Aside::default(),
            desk: Desk::default(),
            client,
            path,
            paths,
            idle,
            lock,
            limits,
            metrics_name,
            has_dead: AtomicBool::new(false),
            unreadable: AtomicBool::new(false),
        }
    }

    /// Tells how many items there are.
    pub(crate) fn tell_depth(&self, items: usize) {
        if let Some(name) = &self.metrics_name {
            let items = u32::try_from(items).unwrap_or(u32::MAX);
            gauge("docent_queue_depth", "queue", name, f64::from(items));
            if items == 0 {
                gauge("docent_queue_head_age_seconds", "queue", name, 0.0);
            }
        }
    }

    /// Tells since when an item has been there that was the first.
    pub(crate) fn tell_head(&self, since: SystemTime) {
        if let Some(name) = &self.metrics_name {
            let age = SystemTime::now().duration_since(since).unwrap_or_default();
            gauge("docent_queue_head_age_seconds", "queue", name, age.as_secs_f64());
        }
    }
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Store").field("path", &self.path).field("paths", &self.paths).finish_non_exhaustive()
    }
}
