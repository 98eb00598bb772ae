//! Processes that were killed and have not ended: the system may hold on to one for as long as it likes.

use std::process::Child;
use std::sync::{Mutex, MutexGuard, PoisonError};

static LEFT: Mutex<Vec<Child>> = Mutex::new(Vec::new());

/// Leaves a process to [`collect`].
pub(super) fn leave(child: Child) {
    left().push(child);
}

/// Collects those that have ended meanwhile, and returns the number of the others.
pub(super) fn collect() -> usize {
    let mut left = left();
    left.retain_mut(|child| matches!(child.try_wait(), Ok(None)));
    left.len()
}

fn left() -> MutexGuard<'static, Vec<Child>> {
    LEFT.lock().unwrap_or_else(PoisonError::into_inner)
}
