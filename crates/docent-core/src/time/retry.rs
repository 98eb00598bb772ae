use crate::time::deadline;
use backon::{BackoffBuilder, ExponentialBuilder};
use std::time::Duration;
use tokio::time::Instant;

/// Policy that decides when an operation is retried. Under any policy, an operation ends by its deadline.
///
/// ```
/// # use docent_core::RetryPolicy;
/// # use std::time::Duration;
/// let patient = RetryPolicy::exponential().between(Duration::from_millis(100), Duration::from_secs(5));
/// let few = RetryPolicy::fixed(Duration::from_millis(200)).limit(3);
/// let never = RetryPolicy::none();
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RetryPolicy {
    first: Duration,
    longest: Duration,
    jitter: bool,
    attempts: Option<usize>,
    elapsed: Option<Duration>,
}

impl RetryPolicy {
    /// Returns the default policy: delays that double from 20 ms to 2 s, each a random fraction of that
    /// ("full jitter").
    #[must_use]
    pub fn exponential() -> Self {
        Self {
            first: Duration::from_millis(20),
            longest: Duration::from_secs(2),
            jitter: true,
            attempts: None,
            elapsed: None,
        }
    }

    /// Returns a policy with a constant delay.
    #[must_use]
    pub fn fixed(delay: Duration) -> Self {
        Self { first: delay, longest: delay, jitter: false, attempts: None, elapsed: None }
    }

    /// Returns a policy without retries.
    #[must_use]
    pub fn none() -> Self {
        Self::fixed(Duration::ZERO).limit(0)
    }

    /// Sets the first and the longest delay of an exponential policy.
    #[must_use]
    pub fn between(self, first: Duration, longest: Duration) -> Self {
        Self { first, longest: longest.max(first), ..self }
    }

    /// Limits the number of attempts after the first.
    #[must_use]
    pub fn limit(self, attempts: usize) -> Self {
        Self { attempts: Some(attempts), ..self }
    }

    /// Allows no further attempt after this much time has passed.
    #[must_use]
    pub fn within(self, elapsed: Duration) -> Self {
        Self { elapsed: Some(elapsed), ..self }
    }

    pub(crate) fn start(&self) -> Backoff {
        let mut delays = ExponentialBuilder::default()
            .with_min_delay(self.first)
            .with_max_delay(self.longest)
            .with_factor(2.0);
        delays = match self.attempts {
            Some(attempts) => delays.with_max_times(attempts),
            None => delays.without_max_times(),
        };
        Backoff { delays: delays.build(), jitter: self.jitter, until: self.elapsed.map(deadline) }
    }
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self::exponential()
    }
}

/// The delays between attempts: of one operation, or of a background task that never gives up.
#[derive(Debug)]
pub(crate) struct Backoff {
    delays: backon::ExponentialBackoff,
    jitter: bool,
    until: Option<Instant>,
}

/// Longest pause of an endless backoff.
const LONGEST_PAUSE: Duration = Duration::from_secs(10);

impl Backoff {
    /// Starts the pauses of a background task that retries until it succeeds.
    pub(crate) fn endless() -> Self {
        RetryPolicy::exponential().between(Duration::from_millis(200), LONGEST_PAUSE).start()
    }

    /// Returns the next pause of an [endless](Self::endless) backoff.
    pub(crate) fn pause(&mut self) -> Duration {
        self.next().unwrap_or(LONGEST_PAUSE)
    }
}

impl Iterator for Backoff {
    type Item = Duration;

    fn next(&mut self) -> Option<Duration> {
        if self.until.is_some_and(|until| Instant::now() >= until) {
            return None;
        }
        let delay = self.delays.next()?;
        Some(if self.jitter { delay.mul_f64(fastrand::f64()) } else { delay })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn exponential_delays_stay_under_their_cap_and_never_end() {
        let policy =
            RetryPolicy::exponential().between(Duration::from_millis(50), Duration::from_millis(900));
        let delays: Vec<_> = policy.start().take(1_000).collect();
        assert_eq!(delays.len(), 1_000);
        assert!(delays.iter().all(|delay| *delay <= Duration::from_millis(900)));
        assert!(delays[10..].iter().any(|delay| *delay > Duration::from_millis(450)), "the cap is used");
    }

    #[tokio::test]
    async fn attempts_and_time_are_limited() {
        assert_eq!(RetryPolicy::none().start().count(), 0);
        assert_eq!(RetryPolicy::fixed(Duration::from_secs(1)).limit(3).start().count(), 3);
        assert_eq!(RetryPolicy::exponential().within(Duration::ZERO).start().count(), 0);
    }

    #[tokio::test]
    async fn a_policy_with_maximal_durations_has_delays_and_does_not_overflow() {
        for policy in [
            RetryPolicy::fixed(Duration::MAX),
            RetryPolicy::exponential().between(Duration::MAX, Duration::MAX),
            RetryPolicy::exponential().between(Duration::ZERO, Duration::MAX).within(Duration::MAX),
        ] {
            assert_eq!(policy.start().take(200).count(), 200, "{policy:?}");
        }
    }

    #[tokio::test]
    async fn a_fixed_delay_is_the_same_each_time() {
        let second = Duration::from_secs(1);
        assert_eq!(RetryPolicy::fixed(second).start().take(2).collect::<Vec<_>>(), [second, second]);
    }
}
