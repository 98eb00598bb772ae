use crate::report::{Recipe, Report};
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use tokio::time::Instant;

/// Minimum interval between two inspections of a place without a change.
const PAUSE: Duration = Duration::from_secs(1);

/// Times at which reports change merely because time passes.
#[derive(Debug, Default)]
pub(super) struct Turns {
    order: BTreeSet<(Instant, Arc<str>)>,
    times: HashMap<Arc<str>, Instant>,
}

impl Turns {
    /// Sets the time for the report on a path.
    pub(super) fn set(&mut self, path: &Arc<str>, report: &Report) {
        self.remove(path);
        let turn = turns_in(report).and_then(|turn| Instant::now().checked_add(turn.max(PAUSE)));
        if let Some(at) = turn {
            self.order.insert((at, Arc::clone(path)));
            self.times.insert(Arc::clone(path), at);
        }
    }

    pub(super) fn remove(&mut self, path: &Arc<str>) {
        if let Some(at) = self.times.remove(path) {
            self.order.remove(&(at, Arc::clone(path)));
        }
    }

    /// Returns the earliest time.
    pub(super) fn next(&self) -> Option<Instant> {
        self.order.first().map(|(at, _)| *at)
    }

    /// Removes and returns a path whose time has come.
    pub(super) fn take(&mut self, now: Instant) -> Option<Arc<str>> {
        let path = self.order.first().filter(|(at, _)| *at <= now).map(|(_, path)| Arc::clone(path))?;
        self.remove(&path);
        Some(path)
    }
}

/// Returns the time until a report changes: a delayed item becomes due, or a lease ends.
fn turns_in(report: &Report) -> Option<Duration> {
    let turn: SystemTime = match &report.recipe {
        Recipe::Queue(queue) => queue.next_due?,
        Recipe::TimedLease(lease) if lease.is_over == Some(false) => lease.end?,
        _ => return None,
    };
    turn.duration_since(report.clock?.now).ok()
}
