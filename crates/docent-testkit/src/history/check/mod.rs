//! The invariants, one file each: the letters and numbers are those of `Invariant`. Each scan takes n log n steps at most.

mod b1_enter;
mod b2_leave;
mod b3_barrier;
mod g1_together;
mod k1_connection;
mod k2_deadlines;
mod k5_leftovers;
mod k7_close;
mod m01_fenced;
mod m02_order;
mod m03_real_time;
mod m04_fences;
mod m05_fifo;
mod m06_orphans;
mod m07_herd;
mod m08_liveness;
mod m09_release;
mod m10_reentry;
mod m11_loss;
mod m12_patience;
mod r1_writer;
mod r2_readers;
mod r3_starvation;
mod r4_step_down;
mod r5_wake_ups;
mod r6_fences;
mod record;
mod s1_permits;

use super::run::Run;
use super::scene::Scene;
use super::violation::Violation;

pub(crate) use m03_real_time::overlaps;

/// What an invariant found.
type Found = Vec<Violation>;

const INVARIANTS: [fn(&Scene<'_>, &mut Found); 28] = [
    record::check,
    m01_fenced::check,
    m02_order::check,
    m03_real_time::check,
    m04_fences::check,
    m05_fifo::check,
    m06_orphans::check,
    m07_herd::check,
    m08_liveness::check,
    m09_release::check,
    m10_reentry::check,
    m11_loss::check,
    m12_patience::check,
    r1_writer::check,
    r2_readers::check,
    r3_starvation::check,
    r4_step_down::check,
    r5_wake_ups::check,
    r6_fences::check,
    s1_permits::check,
    g1_together::check,
    b1_enter::check,
    b2_leave::check,
    b3_barrier::check,
    k1_connection::check,
    k2_deadlines::check,
    k5_leftovers::check,
    k7_close::check,
];

/// Holds a run against all invariants. What was broken, in the order of time.
///
/// Nothing found means nothing if nothing happened: see [`Coverage`](super::Coverage).
pub fn check(run: &Run) -> Vec<Violation> {
    let scene = Scene::of(run);
    let mut found = Found::new();
    for invariant in INVARIANTS {
        invariant(&scene, &mut found);
    }
    found.sort_by_key(|violation| (violation.at, violation.invariant));
    found
}

#[cfg(test)]
mod tests {
    use crate::history::sketch::Sketch;

    #[test]
    fn a_good_run_breaks_nothing() {
        Sketch::good().holds();
    }

    #[test]
    fn a_run_with_nothing_in_it_breaks_nothing() {
        Sketch::new().end(1_000).holds();
    }
}
