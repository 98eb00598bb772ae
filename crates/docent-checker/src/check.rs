//! The invariants, one file each. They are grouped below: locks, readers and writers, elections, permits,
//! barriers, queues, values, views, watchers, and sessions. `Invariant` gives each its letter and number.
//! Each check takes at most n log n steps.

mod record;

mod exclusion;
mod fenced;
mod fences;
mod herd;
mod liveness;
mod loss;
mod order;
mod orphans;
mod patience;
mod real_time;
mod reentry;
mod release;

mod downgrade;
mod reader_fences;
mod readers;
mod starvation;
mod wake_ups;
mod writer;

mod deleted_leader;
mod enrolled;
mod observers;
mod one_leader;
mod stability;
mod succession;
mod takeover;
mod work;

mod permits;
mod together;

mod barrier;
mod barrier_enter;
mod barrier_leave;

mod acks;
mod claimed_items;
mod claims;
mod dead_letters;
mod delivery_counts;
mod delivery_writes;
mod given_up;
mod in_order;
mod item_order;
mod item_turns;
mod items;
mod noticed;
mod puts;

mod counters;
mod latest;
mod once;
mod seen;
mod values;

mod announced;
mod ownership;
mod removals;
mod views;

mod answers;
mod watch_events;

mod close;
mod connection;
mod deadlines;
mod leftovers;

use crate::analysis::Analysis;
use crate::run::Run;
use crate::violation::{Found, Violation};

pub(crate) use real_time::overlaps;

/// All checks. A check that is missing here is dead code, which the compiler reports.
const CHECKS: &[fn(&Analysis<'_>, &mut Found)] = &[
    record::check,
    fenced::check,
    exclusion::check,
    real_time::check,
    fences::check,
    order::check,
    orphans::check,
    herd::check,
    liveness::check,
    release::check,
    reentry::check,
    loss::check,
    patience::check,
    writer::check,
    readers::check,
    starvation::check,
    downgrade::check,
    wake_ups::check,
    reader_fences::check,
    one_leader::check,
    work::check,
    succession::check,
    enrolled::check,
    deleted_leader::check,
    stability::check,
    takeover::check,
    observers::check,
    permits::check,
    together::check,
    barrier_enter::check,
    barrier_leave::check,
    barrier::check,
    items::check,
    puts::check,
    delivery_writes::check,
    item_order::check,
    item_turns::check,
    delivery_counts::check,
    acks::check,
    claims::check,
    dead_letters::check,
    noticed::check,
    given_up::check,
    claimed_items::check,
    in_order::check,
    values::check,
    latest::check,
    once::check,
    seen::check,
    counters::check,
    views::check,
    removals::check,
    ownership::check,
    announced::check,
    watch_events::check,
    answers::check,
    connection::check,
    deadlines::check,
    leftovers::check,
    close::check,
];

/// Checks a run against all invariants. Returns the violations, ordered by time.
///
/// A run in which nothing happened violates nothing: see [`Coverage`](crate::Coverage).
pub fn check(run: &Run) -> Vec<Violation> {
    let analysis = Analysis::of(run);
    let mut found = Found::new();
    for check in CHECKS {
        check(&analysis, &mut found);
    }
    found.sort_by_key(|violation| (violation.at, violation.invariant));
    found
}

#[cfg(test)]
mod tests {
    use crate::history::HistoryBuilder;

    #[test]
    fn a_good_run_breaks_nothing() {
        HistoryBuilder::good().holds();
    }

    #[test]
    fn a_run_with_nothing_in_it_breaks_nothing() {
        HistoryBuilder::new().end(1_000).holds();
    }
}
