use crate::report::{Recipe, Report};
use std::time::{Duration, SystemTime};

/// Time until time alone changes a report: a delayed item becomes due, or a lease is over.
pub(super) fn turns_in(report: &Report) -> Option<Duration> {
    let turn: SystemTime = match &report.recipe {
        Recipe::Queue(queue) => queue.next_due?,
        Recipe::TimedLease(lease) if lease.is_over == Some(false) => lease.end?,
        _ => return None,
    };
    turn.duration_since(report.clock?.now).ok()
}
