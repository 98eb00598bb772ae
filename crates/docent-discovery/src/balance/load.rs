use docent_core::recipe::after;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
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

/// Number of a pick that decides about the probation in which it was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Trial(u64);

/// Work in flight with an instance, and how earlier work went.
#[derive(Debug, Default)]
pub(crate) struct Load {
    in_flight: AtomicUsize,
    /// Number of the last trial.
    trials: AtomicU64,
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
        /// The pick under way that decides.
        trial: Option<Trial>,
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
                *self = Self::Probation { until: after(now, period), trial: None }
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
            Health::Sound { .. } | Health::Probation { trial: None, .. }
        )
    }

    /// Counts a pick of it. Returns the trial when that pick decides whether it is on probation any longer.
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

    /// A pick is over.
    pub(super) fn end(&self, was: Option<Trial>) {
        self.in_flight.fetch_sub(1, Ordering::Relaxed);
        match &mut *self.health() {
            Health::Probation { trial, .. } if *trial == was => *trial = None,
            _ => {}
        }
    }

    /// A pick was a success. Where the instance is set aside, or was again since that pick, it is not sound
    /// because of it: only the trial of the present probation decides.
    pub(super) fn succeeded(&self, was: Option<Trial>) {
        let mut health = self.health();
        let is_sound = match *health {
            Health::Sound { .. } => true,
            Health::Aside { .. } => false,
            Health::Probation { trial, .. } => was.is_some() && trial == was,
        };
        if is_sound {
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
        load.succeeded(None);
        assert!(!load.admits(later(31), RULE), "that one was under way before");
        assert!(load.admits(later(33), RULE) && !load.is_sound(later(33), RULE));
        let trial = load.begin();
        assert!(trial.is_some() && !load.admits(later(34), RULE), "one at a time");
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
    async fn a_trial_of_an_earlier_probation_says_nothing_of_a_later_verdict() {
        let load = Load::default();
        load.failed(later(0), RULE);
        load.failed(later(0), RULE);
        assert!(load.admits(later(31), RULE));
        let (old, meanwhile) = (load.begin(), load.begin());
        load.end(meanwhile);
        assert!(load.failed(later(32), RULE), "a pick that was under way failed meanwhile");
        load.succeeded(old);
        assert!(!load.admits(later(33), RULE));
        // Neither does it end the trial of the probation after that.
        assert!(load.admits(later(63), RULE));
        let new = load.begin();
        load.succeeded(old);
        load.end(old);
        assert!(!load.admits(later(64), RULE));
        load.succeeded(new);
        assert!(load.is_sound(later(64), RULE));
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
