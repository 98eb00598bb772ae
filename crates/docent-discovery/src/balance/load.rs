use docent_core::recipe::after;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// Rule by which an instance that fails is picked no more for a while.
///
/// After `threshold` failures without a success in between, the first no longer than `period` ago, the
/// instance is set aside for `period`. Then it is on probation for as long again: one pick of it at a time,
/// until one is a success. A failure sets it aside again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct OutlierPolicy {
    /// Failures until it is set aside; 0 for never. Default: 2.
    pub threshold: u32,
    /// How long it is set aside, and how long it is on probation after that. Default: 30 s.
    pub period: Duration,
}

impl Default for OutlierPolicy {
    fn default() -> Self {
        Self { threshold: 2, period: Duration::from_secs(30) }
    }
}

impl OutlierPolicy {
    /// Instances are picked however often they fail.
    pub fn never() -> Self {
        Self { threshold: 0, ..Self::default() }
    }

    /// Sets [`threshold`](Self::threshold).
    #[must_use]
    pub fn threshold(mut self, threshold: u32) -> Self {
        self.threshold = threshold;
        self
    }

    /// Sets [`period`](Self::period).
    #[must_use]
    pub fn period(mut self, period: Duration) -> Self {
        self.period = period;
        self
    }
}

/// Work in flight with an instance, and how earlier work went.
#[derive(Debug, Default)]
pub(crate) struct Load {
    in_flight: AtomicUsize,
    health: Mutex<Health>,
}

#[derive(Debug)]
enum Health {
    Sound {
        failures: u32,
        first: Option<Instant>,
    },
    Aside {
        until: Instant,
    },
    Probation {
        until: Instant,
        /// A pick is under way that decides.
        on_trial: bool,
    },
}

const SOUND: Health = Health::Sound { failures: 0, first: None };

impl Default for Health {
    fn default() -> Self {
        SOUND
    }
}

impl Health {
    /// Its state by `now`.
    fn at(&mut self, now: Instant, period: Duration) -> &mut Self {
        match *self {
            Self::Aside { until } if now >= until => {
                *self = Self::Probation { until: after(now, period), on_trial: false }
            }
            Self::Probation { until, .. } if now >= until => *self = SOUND,
            _ => {}
        }
        self
    }
}

impl Load {
    fn health(&self) -> MutexGuard<'_, Health> {
        self.health.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn in_flight(&self) -> usize {
        self.in_flight.load(Ordering::Relaxed)
    }

    /// True when it has not failed lately.
    pub(super) fn is_sound(&self, now: Instant, rule: OutlierPolicy) -> bool {
        matches!(self.health().at(now, rule.period), Health::Sound { .. })
    }

    /// True when it can be picked.
    pub(super) fn admits(&self, now: Instant, rule: OutlierPolicy) -> bool {
        matches!(
            self.health().at(now, rule.period),
            Health::Sound { .. } | Health::Probation { on_trial: false, .. }
        )
    }

    /// Counts a pick of it. True when that pick decides whether it is on probation any longer.
    pub(super) fn begin(&self) -> bool {
        self.in_flight.fetch_add(1, Ordering::Relaxed);
        match &mut *self.health() {
            Health::Probation { on_trial, .. } => !std::mem::replace(on_trial, true),
            _ => false,
        }
    }

    /// A pick is over.
    pub(super) fn end(&self, was_trial: bool) {
        self.in_flight.fetch_sub(1, Ordering::Relaxed);
        if was_trial && let Health::Probation { on_trial, .. } = &mut *self.health() {
            *on_trial = false;
        }
    }

    pub(super) fn succeeded(&self, was_trial: bool) {
        let mut health = self.health();
        if was_trial || matches!(*health, Health::Sound { .. }) {
            *health = SOUND;
        }
    }

    /// True when it is set aside by this.
    pub(super) fn failed(&self, now: Instant, rule: OutlierPolicy) -> bool {
        if rule.threshold == 0 {
            return false;
        }
        let mut health = self.health();
        let is_aside = match health.at(now, rule.period) {
            Health::Aside { .. } => return false,
            Health::Probation { .. } => true,
            Health::Sound { failures, first } => {
                if first.is_none_or(|first| now - first > rule.period) {
                    (*failures, *first) = (0, Some(now));
                }
                *failures += 1;
                *failures >= rule.threshold
            }
        };
        if is_aside {
            *health = Health::Aside { until: after(now, rule.period) };
        }
        is_aside
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULE: OutlierPolicy = OutlierPolicy { threshold: 2, period: Duration::from_secs(30) };

    fn later(seconds: u64) -> Instant {
        Instant::now() + Duration::from_secs(seconds)
    }

    #[tokio::test(start_paused = true)]
    async fn failures_set_it_aside_and_a_success_ends_its_probation() {
        let load = Load::default();
        assert!(!load.failed(later(0), RULE));
        load.succeeded(load.begin());
        assert!(!load.failed(later(1), RULE), "the success is in between");
        assert!(load.admits(later(1), RULE));
        assert!(load.failed(later(2), RULE));
        assert!(!load.admits(later(31), RULE));
        load.succeeded(false);
        assert!(!load.admits(later(31), RULE), "that one was under way before");
        assert!(load.admits(later(33), RULE) && !load.is_sound(later(33), RULE));
        let trial = load.begin();
        assert!(trial && !load.admits(later(34), RULE), "one at a time");
        load.end(trial);
        assert!(load.admits(later(34), RULE));
        let trial = load.begin();
        load.succeeded(trial);
        assert!(load.is_sound(later(34), RULE) && load.in_flight() == 2);
    }

    #[tokio::test(start_paused = true)]
    async fn a_failure_on_probation_sets_it_aside_at_once_and_time_without_one_ends_it() {
        let load = Load::default();
        load.failed(later(0), RULE);
        load.failed(later(0), RULE);
        assert!(load.admits(later(31), RULE));
        assert!(load.failed(later(32), RULE));
        assert!(!load.admits(later(61), RULE));
        assert!(load.admits(later(63), RULE) && !load.is_sound(later(92), RULE));
        assert!(load.is_sound(later(94), RULE));
    }

    #[tokio::test(start_paused = true)]
    async fn old_failures_do_not_count_and_nothing_is_set_aside_where_nothing_is_to_be() {
        let load = Load::default();
        assert!(!load.failed(later(0), RULE) && !load.failed(later(31), RULE));
        assert!(load.failed(later(32), RULE));
        let load = Load::default();
        assert!((0..100).all(|n| !load.failed(later(n), OutlierPolicy::never())));
    }
}
