use std::fmt;
use std::time::Duration;
use tokio::time::{Instant, sleep_until, timeout_at};

/// Pause between two checks.
const PAUSE: Duration = Duration::from_millis(10);
/// Replaces limits that exceed the range of tokio's clock.
const FOR_EVER: Duration = Duration::from_secs(30 * 365 * 24 * 60 * 60);

/// Error of a condition that was not met in time, with the last value seen.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the condition was not met within {limit:?} ({checks} checks): {}", self.story())]
pub struct NotMet {
    limit: Duration,
    checks: u64,
    seen: Option<String>,
    stuck: bool,
}

impl NotMet {
    /// Returns the time limit of the wait.
    pub fn limit(&self) -> Duration {
        self.limit
    }

    /// Returns the number of checks that finished.
    pub fn looks(&self) -> u64 {
        self.checks
    }

    /// Returns the last value as formatted by its `Debug`; `None` if no check finished.
    pub fn seen(&self) -> Option<&str> {
        self.seen.as_deref()
    }

    fn story(&self) -> String {
        match (&self.seen, self.stuck) {
            (Some(seen), false) => format!("the last value was {seen}"),
            (Some(seen), true) => format!("the last value was {seen}, and the next check did not finish"),
            (None, _) => "the first check did not finish".to_owned(),
        }
    }
}

/// Calls `check` every 10 ms until `holds` accepts its result, and returns that result. `check` is called at
/// least once, and a call that has not finished at the `limit` is dropped.
///
/// The time is that of tokio's clock, so the pauses take no real time while the clock is paused.
///
/// # Errors
/// [`NotMet`] after `limit`, with the number of checks and the last value.
///
/// # Cancel safety
/// This function is cancel safe. A call of `check` in progress is dropped.
///
/// # Examples
/// ```
/// use docent_testkit::eventually;
/// use std::time::Duration;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let mut jobs = 0;
/// let check = async || {
///     jobs += 1; // or ask a client, a service, a queue
///     jobs
/// };
/// let seen = eventually(Duration::from_secs(5), check, |jobs| *jobs >= 3).await;
/// assert_eq!(seen, Ok(3));
///
/// let never = eventually(Duration::ZERO, async || "starting", |state| *state == "ready").await;
/// assert_eq!(never.unwrap_err().seen(), Some("\"starting\""));
/// # }
/// ```
pub async fn eventually<T: fmt::Debug>(
    limit: Duration,
    mut check: impl AsyncFnMut() -> T,
    holds: impl Fn(&T) -> bool,
) -> Result<T, NotMet> {
    let start = Instant::now();
    let deadline = start.checked_add(limit).unwrap_or_else(|| start + FOR_EVER);
    let (mut checks, mut last) = (0, None);
    loop {
        let Ok(seen) = timeout_at(deadline, check()).await else {
            return Err(not_met(limit, checks, last.as_ref(), true));
        };
        checks += 1;
        if holds(&seen) {
            return Ok(seen);
        }
        if Instant::now() >= deadline {
            return Err(not_met(limit, checks, Some(&seen), false));
        }
        last = Some(seen);
        sleep_until(deadline.min(Instant::now() + PAUSE)).await;
    }
}

fn not_met(limit: Duration, checks: u64, seen: Option<&impl fmt::Debug>, stuck: bool) -> NotMet {
    NotMet { limit, checks, seen: seen.map(|seen| format!("{seen:?}")), stuck }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[tokio::test(start_paused = true)]
    async fn a_condition_that_holds_immediately_takes_no_time() {
        let start = Instant::now();
        assert_eq!(eventually(Duration::ZERO, async || 1, |_| true).await, Ok(1));
        assert_eq!(start.elapsed(), Duration::ZERO);
    }

    #[tokio::test(start_paused = true)]
    async fn the_wait_ends_at_its_limit_with_what_was_seen_last() {
        let (start, mut number) = (Instant::now(), 0);
        let check = async || {
            number += 1;
            number
        };
        let error = eventually(SECOND, check, |_| false).await.unwrap_err();
        assert_eq!(start.elapsed(), SECOND);
        assert_eq!(
            error.to_string(),
            "the condition was not met within 1s (101 checks): the last value was 101"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_check_that_hangs_is_abandoned_and_reported() {
        let check = async || std::future::pending::<u8>().await;
        let error = eventually(SECOND, check, |_| true).await.unwrap_err();
        assert_eq!(
            error.to_string(),
            "the condition was not met within 1s (0 checks): the first check did not finish"
        );
        let mut first = true;
        let check = async || if std::mem::take(&mut first) { 7 } else { std::future::pending().await };
        let error = eventually(SECOND, check, |_| false).await.unwrap_err();
        let text = "the condition was not met within 1s (1 checks): the last value was 7, and the next check did not finish";
        assert_eq!(error.to_string(), text);
    }

    #[tokio::test(start_paused = true)]
    async fn the_longest_limit_is_no_panic() {
        assert_eq!(eventually(Duration::MAX, async || 1, |_| true).await, Ok(1));
    }
}
