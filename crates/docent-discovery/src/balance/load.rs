use docent_core::recipe::after;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// Rule for setting aside an instance that fails, so that it is not picked for a while.
///
/// An instance that fails `threshold` times within `period`, without a success in between, is set aside for
/// `period`. After that it is on probation for another `period`, in which it has at most one pick in flight.
/// A success ends the probation, and a failure sets the instance aside again. If no pick decides the
/// probation, the instance counts as healthy when the period is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct OutlierPolicy {
    /// Number of failures after which an instance is set aside; 0 means never. Default: 2.
    pub threshold: u32,
    /// Time for which an instance is set aside, and then on probation. Default: 30 s.
    pub period: Duration,
}

impl Default for OutlierPolicy {
    fn default() -> Self {
        Self { threshold: 2, period: Duration::from_secs(30) }
    }
}

impl OutlierPolicy {
    /// Creates a policy that never sets an instance aside.
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

/// Number of the pick that decides the probation during which it was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Trial(u64);

/// Work in flight at an instance, and the outcome of earlier work.
#[derive(Debug, Default)]
pub(crate) struct Load {
    in_flight: AtomicUsize,
    /// Number of the last trial.
    trials: AtomicU64,
    health: Mutex<Health>,
}

#[derive(Debug)]
enum Health {
    Healthy {
        failures: u32,
        first: Option<Instant>,
    },
    SetAside {
        until: Instant,
    },
    Probation {
        until: Instant,
        /// The pick in flight that decides the probation.
        trial: Option<Trial>,
    },
}

const HEALTHY: Health = Health::Healthy { failures: 0, first: None };

impl Default for Health {
    fn default() -> Self {
        HEALTHY
    }
}

impl Health {
    /// Returns the state at `now`.
    fn at(&mut self, now: Instant, period: Duration) -> &mut Self {
        match *self {
            Self::SetAside { until } if now >= until => {
                *self = Self::Probation { until: after(now, period), trial: None }
            }
            Self::Probation { until, .. } if now >= until => *self = HEALTHY,
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

    /// Returns true if the instance has not failed recently.
    pub(super) fn is_healthy(&self, now: Instant, rule: OutlierPolicy) -> bool {
        matches!(self.health().at(now, rule.period), Health::Healthy { .. })
    }

    /// Returns true if the instance can be picked.
    pub(super) fn admits(&self, now: Instant, rule: OutlierPolicy) -> bool {
        matches!(
            self.health().at(now, rule.period),
            Health::Healthy { .. } | Health::Probation { trial: None, .. }
        )
    }

    /// Counts a pick. Returns the trial if this pick decides the probation.
    pub(super) fn begin(&self) -> Option<Trial> {
        self.in_flight.fetch_add(1, Ordering::Relaxed);
        match &mut *self.health() {
            Health::Probation { trial: trial @ None, .. } => {
                *trial = Some(Trial(self.trials.fetch_add(1, Ordering::Relaxed)));
                *trial
            }
            _ => None,
        }
    }

    /// Ends a pick.
    pub(super) fn end(&self, was: Option<Trial>) {
        self.in_flight.fetch_sub(1, Ordering::Relaxed);
        match &mut *self.health() {
            Health::Probation { trial, .. } if *trial == was => *trial = None,
            _ => {}
        }
    }

    /// Records that a pick succeeded. If the instance is set aside, or was set aside again since that pick,
    /// the success does not make it healthy: only the trial of the current probation decides.
    pub(super) fn succeeded(&self, was: Option<Trial>) {
        let mut health = self.health();
        let is_healthy = match *health {
            Health::Healthy { .. } => true,
            Health::SetAside { .. } => false,
            Health::Probation { trial, .. } => was.is_some() && trial == was,
        };
        if is_healthy {
            *health = HEALTHY;
        }
    }

    /// Records a failure. Returns true if it set the instance aside.
    pub(super) fn failed(&self, now: Instant, rule: OutlierPolicy) -> bool {
        if rule.threshold == 0 {
            return false;
        }
        let mut health = self.health();
        let is_set_aside = match health.at(now, rule.period) {
            Health::SetAside { .. } => return false,
            Health::Probation { .. } => true,
            Health::Healthy { failures, first } => {
                if first.is_none_or(|first| now - first > rule.period) {
                    (*failures, *first) = (0, Some(now));
                }
                *failures += 1;
                *failures >= rule.threshold
            }
        };
        if is_set_aside {
            *health = Health::SetAside { until: after(now, rule.period) };
        }
        is_set_aside
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
    async fn failures_set_an_instance_aside_and_a_success_ends_its_probation() {
        let load = Load::default();
        assert!(!load.failed(later(0), RULE));
        load.succeeded(load.begin());
        assert!(!load.failed(later(1), RULE), "the success is in between");
        assert!(load.admits(later(1), RULE));
        assert!(load.failed(later(2), RULE));
        assert!(!load.admits(later(31), RULE));
        load.succeeded(None);
        assert!(!load.admits(later(31), RULE), "that pick was made before the instance was set aside");
        assert!(load.admits(later(33), RULE) && !load.is_healthy(later(33), RULE));
        let trial = load.begin();
        assert!(trial.is_some() && !load.admits(later(34), RULE), "only one pick at a time");
        load.end(trial);
        assert!(load.admits(later(34), RULE));
        let trial = load.begin();
        load.succeeded(trial);
        assert!(load.is_healthy(later(34), RULE) && load.in_flight() == 2);
    }

    #[tokio::test(start_paused = true)]
    async fn a_failure_on_probation_sets_aside_again_and_a_period_without_failures_ends_it() {
        let load = Load::default();
        load.failed(later(0), RULE);
        load.failed(later(0), RULE);
        assert!(load.admits(later(31), RULE));
        assert!(load.failed(later(32), RULE));
        assert!(!load.admits(later(61), RULE));
        assert!(load.admits(later(63), RULE) && !load.is_healthy(later(92), RULE));
        assert!(load.is_healthy(later(94), RULE));
    }

    #[tokio::test(start_paused = true)]
    async fn a_success_from_an_earlier_probation_does_not_affect_a_later_verdict() {
        let load = Load::default();
        load.failed(later(0), RULE);
        load.failed(later(0), RULE);
        assert!(load.admits(later(31), RULE));
        let (old, meanwhile) = (load.begin(), load.begin());
        load.end(meanwhile);
        assert!(load.failed(later(32), RULE), "an earlier pick failed meanwhile");
        load.succeeded(old);
        assert!(!load.admits(later(33), RULE));
        // The old trial does not end the trial of the next probation either.
        assert!(load.admits(later(63), RULE));
        let new = load.begin();
        load.succeeded(old);
        load.end(old);
        assert!(!load.admits(later(64), RULE));
        load.succeeded(new);
        assert!(load.is_healthy(later(64), RULE));
    }

    #[tokio::test(start_paused = true)]
    async fn old_failures_do_not_count_and_a_policy_of_never_sets_nothing_aside() {
        let load = Load::default();
        assert!(!load.failed(later(0), RULE) && !load.failed(later(31), RULE));
        assert!(load.failed(later(32), RULE));
        let load = Load::default();
        assert!((0..100).all(|n| !load.failed(later(n), OutlierPolicy::never())));
    }
}
