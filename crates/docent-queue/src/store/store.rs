use super::{Backlog, Items, LocalItems};
use crate::layout::Paths;
use docent_core::Client;
use docent_core::recipe::Line;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Limits of a queue.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    /// How many items there may be.
    pub(crate) capacity: Option<usize>,
    /// How often an item is handed out.
    pub(crate) max_deliveries: Option<u32>,
    /// How many items are claimed in one step for a stream.
    pub(crate) prefetch: usize,
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
    /// Items at the servers.
    pub(crate) items: Items,
    /// Items that this process holds, or leaves alone.
    pub(crate) local: LocalItems,
    /// Held by the one task of this process that claims: so the claims of a session are in order.
    pub(crate) backlog: tokio::sync::Mutex<Backlog>,
    /// Set when the folder of the dead letters is known to be there.
    pub(crate) has_dead: AtomicBool,
}

impl Store {
    pub(crate) fn new(
        client: Client,
        path: String,
        paths: Paths,
        idle: Line,
        lock: Option<Line>,
        limits: Limits,
    ) -> Self {
        let paths = Arc::new(paths);
        Self {
            items: Items::new(&client, &path, &paths, limits.capacity),
            local: LocalItems::new(lock.is_some()),
            client,
            path,
            paths,
            idle,
            lock,
            limits,
            backlog: tokio::sync::Mutex::default(),
            has_dead: AtomicBool::new(false),
        }
    }
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Store").field("path", &self.path).field("paths", &self.paths).finish_non_exhaustive()
    }
}
