//! Processes that were killed but have not ended. The system may hold on to one indefinitely.

use std::process::Child;
use std::sync::{Mutex, MutexGuard, PoisonError};

static ABANDONED: Mutex<Vec<Child>> = Mutex::new(Vec::new());

/// Leaves a process to [`collect`].
pub(super) fn add(child: Child) {
    processes().push(child);
}

/// Collects the processes that have ended, and returns the number of those that have not.
pub(super) fn collect() -> usize {
    let mut processes = processes();
    processes.retain_mut(|child| matches!(child.try_wait(), Ok(None)));
    processes.len()
}

fn processes() -> MutexGuard<'static, Vec<Child>> {
    ABANDONED.lock().unwrap_or_else(PoisonError::into_inner)
}
