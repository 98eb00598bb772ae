use crate::report::{Recipe, Report};
use std::time::{Duration, SystemTime};

/// Returns the time until a report changes merely because time passes: a delayed item becomes due, or a lease
/// ends.
pub(super) fn turns_in(report: &Report) -> Option<Duration> {
    let turn: SystemTime = match &report.recipe {
        Recipe::Queue(queue) => queue.next_due?,
        Recipe::TimedLease(lease) if lease.is_over == Some(false) => lease.end?,
        _ => return None,
    };
    turn.duration_since(report.clock?.now).ok()
}
