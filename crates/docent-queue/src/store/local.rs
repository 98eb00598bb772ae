use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio_util::sync::CancellationToken;

/// Items that this process holds, and items that it leaves alone.
pub(crate) struct LocalItems {
    /// True in `ordered` mode.
    ordered: bool,
    /// Items that this process holds, each with the number of its delivery and the token that is cancelled
    /// when it is lost.
    held: Mutex<HashMap<String, (u64, CancellationToken)>>,
    /// Number of the next delivery.
    deliveries: AtomicU64,
    /// Items that could be neither decoded nor moved to the dead letters: they stay, and block nobody here.
    quarantined: Mutex<HashSet<String>>,
    /// Set when an item was given back since the last listing.
    given_back: AtomicBool,
}

impl LocalItems {
    pub(super) fn new(ordered: bool) -> Self {
        Self {
            ordered,
            held: Mutex::default(),
            deliveries: AtomicU64::new(0),
            quarantined: Mutex::default(),
            given_back: AtomicBool::new(false),
        }
    }

    fn held(&self) -> MutexGuard<'_, HashMap<String, (u64, CancellationToken)>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn quarantined(&self) -> MutexGuard<'_, HashSet<String>> {
        self.quarantined.lock().unwrap_or_else(PoisonError::into_inner)
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

    /// Says whether an item came back since this was asked last.
    pub(crate) fn take_given_back(&self) -> bool {
        self.given_back.swap(false, Ordering::AcqRel)
    }

    /// True for an item that this process leaves alone.
    pub(crate) fn is_quarantined(&self, name: &str) -> bool {
        self.quarantined().contains(name)
    }

    /// Leaves an item alone from now on, so that it blocks nobody here.
    pub(crate) fn quarantine(&self, name: &str) {
        self.quarantined().insert(name.to_owned());
    }

    /// Items among `names` that this process has not quarantined and holds no claim of. The holder of the
    /// lock in `ordered` mode gets the first item, whichever process had it before.
    pub(crate) fn candidates(&self, mut names: Vec<String>) -> Vec<String> {
        let (held, mut quarantined) = (self.held(), self.quarantined());
        if !quarantined.is_empty() {
            // Names that are gone are forgotten.
            quarantined.retain(|name| names.contains(name));
        }
        let is_held =
            |name: &String| !self.ordered && held.get(name).is_some_and(|(_, lost)| !lost.is_cancelled());
        names.retain(|name| !is_held(name) && !quarantined.contains(name));
        names
    }
}
