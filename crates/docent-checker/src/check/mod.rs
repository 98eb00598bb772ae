//! The invariants, one file each: the letters and numbers are those of `Invariant`. Each scan takes n log n
//! steps at most.

mod b1_enter;
mod b2_leave;
mod b3_barrier;
mod c1_values;
mod c2_latest;
mod c3_once;
mod c4_seen;
mod c5_counts;
mod d1_views;
mod d2_removals;
mod d3_ownership;
mod d4_announced;
mod e1_one_leader;
mod e2_terms;
mod e3_turns;
mod e4_work;
mod e5_succession;
mod e6_enrolled;
mod e7_deleted;
mod e8_stability;
mod e9_takeover;
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
mod o1_onlookers;
mod q1_kept;
mod q2_puts;
mod q3_order;
mod q4_counts;
mod q5_acks;
mod q6_claims;
mod q7_dead_letters;
mod q8_noticed;
mod q9_given_up;
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

/// Violations that an invariant found.
type Found = Vec<Violation>;

const INVARIANTS: [fn(&Scene<'_>, &mut Found); 56] = [
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
    e1_one_leader::check,
    e2_terms::check,
    e3_turns::check,
    e4_work::check,
    e5_succession::check,
    e6_enrolled::check,
    e7_deleted::check,
    e8_stability::check,
    e9_takeover::check,
    o1_onlookers::check,
    s1_permits::check,
    g1_together::check,
    b1_enter::check,
    b2_leave::check,
    b3_barrier::check,
    q1_kept::check,
    q2_puts::check,
    q3_order::check,
    q4_counts::check,
    q5_acks::check,
    q6_claims::check,
    q7_dead_letters::check,
    q8_noticed::check,
    q9_given_up::check,
    c1_values::check,
    c2_latest::check,
    c3_once::check,
    c4_seen::check,
    c5_counts::check,
    d1_views::check,
    d2_removals::check,
    d3_ownership::check,
    d4_announced::check,
    k1_connection::check,
    k2_deadlines::check,
    k5_leftovers::check,
    k7_close::check,
];

/// Holds a run against all invariants. Returns the violations in the order of time.
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
    use crate::sketch::Sketch;

    #[test]
    fn a_good_run_breaks_nothing() {
        Sketch::good().holds();
    }

    #[test]
    fn a_run_with_nothing_in_it_breaks_nothing() {
        Sketch::new().end(1_000).holds();
    }
}
