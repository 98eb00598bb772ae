use crate::backlog::Backlog;
use crate::layout::Places;
use crate::name::in_order;
use docent_core::recipe::Line;
use docent_core::{Client, CreateMode, Error, ErrorKind};
use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio_util::sync::CancellationToken;

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
    pub(crate) places: Places,
    /// Line of the consumers that found nothing.
    pub(crate) idle: Line,
    /// In `ordered` mode, the lock of the consumers.
    pub(crate) lock: Option<Line>,
    pub(crate) limits: Limits,
    /// Held by the one task of this process that claims: so the claims of a session are in order.
    pub(crate) backlog: tokio::sync::Mutex<Backlog>,
    /// Set when an item was given back since the last listing.
    pub(crate) given_back: AtomicBool,
    /// Items that this process holds, each with the number of its delivery and the token that is cancelled
    /// when it is lost.
    held: Mutex<HashMap<String, (u64, CancellationToken)>>,
    deliveries: AtomicU64,
    /// Items that could be neither decoded nor moved to the dead letters: they stay, and block nobody here.
    aside: Mutex<HashSet<String>>,
    /// Set when numbers are nearly used up.
    pub(crate) exhausted: AtomicBool,
    /// Set when the folder of the dead letters is known to be there.
    pub(crate) has_dead: AtomicBool,
    /// Set when children that are no items were reported.
    reported: AtomicBool,
}

impl Store {
    pub(crate) fn new(
        client: Client,
        path: String,
        places: Places,
        idle: Line,
        lock: Option<Line>,
        limits: Limits,
    ) -> Self {
        Self {
            client,
            path,
            places,
            idle,
            lock,
            limits,
            backlog: tokio::sync::Mutex::default(),
            given_back: AtomicBool::new(false),
            held: Mutex::default(),
            deliveries: AtomicU64::new(0),
            aside: Mutex::default(),
            exhausted: AtomicBool::new(false),
            has_dead: AtomicBool::new(false),
            reported: AtomicBool::new(false),
        }
    }

    /// Names of the items, first in first. A queue that does not exist is empty.
    pub(crate) async fn list(&self) -> Result<Vec<String>, Error> {
        match self.client.children(&self.places.items).await {
            Ok(children) => Ok(self.items(children.names)),
            Err(error) if error.kind() == ErrorKind::NoNode => Ok(Vec::new()),
            Err(error) => Err(error),
        }
    }

    /// The items among the children of the folder. Others are ignored, and reported once.
    pub(crate) fn items(&self, names: Vec<String>) -> Vec<String> {
        let count = names.len();
        let items = in_order(names, self.places.prefix());
        if items.len() < count && !self.reported.swap(true, Ordering::Relaxed) {
            let foreign = count - items.len();
            tracing::warn!(path = %self.path, foreign, "the queue has children that are no items: ignored");
        }
        items
    }

    /// Creates the folder `path`, if it is missing, as one that stays: the numbers of items go on increasing.
    pub(crate) async fn ensure_folder(&self, path: &str) -> Result<(), Error> {
        match self.client.create(path, "", CreateMode::Persistent).await {
            Ok(_) => Ok(()),
            // The folder is the same, whichever client made it.
            Err(error) if matches!(error.kind(), ErrorKind::NodeExists | ErrorKind::OutcomeUnknown) => Ok(()),
            Err(error) => Err(error),
        }
    }

    fn held(&self) -> MutexGuard<'_, HashMap<String, (u64, CancellationToken)>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn aside(&self) -> MutexGuard<'_, HashSet<String>> {
        self.aside.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that this process holds it, until `lost` is cancelled. Returns the number of the delivery.
    pub(crate) fn hold(&self, name: &str, lost: CancellationToken) -> u64 {
        let number = self.deliveries.fetch_add(1, Ordering::Relaxed);
        self.held().insert(name.to_owned(), (number, lost));
        number
    }

    /// The delivery of that number does not hold it any more: it may be free, unless it is `done`.
    pub(crate) fn let_go(&self, name: &str, number: u64, done: bool) {
        let mut held = self.held();
        if held.get(name).is_some_and(|(other, _)| *other == number) {
            held.remove(name);
        }
        drop(held);
        if !done {
            self.look_again();
        }
    }

    /// The last listing is not to be relied on: an item came back.
    pub(crate) fn look_again(&self) {
        self.given_back.store(true, Ordering::Release);
    }

    pub(crate) fn is_aside(&self, name: &str) -> bool {
        self.aside().contains(name)
    }

    pub(crate) fn set_aside(&self, name: &str) {
        self.aside().insert(name.to_owned());
    }

    /// Items among `names` that this process has not set aside and holds no claim of. The holder of the lock
    /// in `ordered` mode gets the first item, whichever process had it before.
    pub(crate) fn candidates(&self, mut names: Vec<String>) -> Vec<String> {
        let (held, mut aside) = (self.held(), self.aside());
        if !aside.is_empty() {
            // Names that are gone are forgotten.
            aside.retain(|name| names.contains(name));
        }
        let is_held = |name: &String| {
            self.lock.is_none() && held.get(name).is_some_and(|(_, lost)| !lost.is_cancelled())
        };
        names.retain(|name| !is_held(name) && !aside.contains(name));
        names
    }
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Store")
            .field("path", &self.path)
            .field("places", &self.places)
            .finish_non_exhaustive()
    }
}
