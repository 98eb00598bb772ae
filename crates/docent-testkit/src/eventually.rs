use std::fmt;
use std::time::Duration;
use tokio::time::{Instant, sleep_until, timeout_at};

/// Pause between two looks.
const PAUSE: Duration = Duration::from_millis(10);
/// Stands for limits that tokio's clock cannot count to.
const FOR_EVER: Duration = Duration::from_secs(30 * 365 * 24 * 60 * 60);

/// Error of a wait whose condition did not hold in time, with what was seen last.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("it does not hold after {limit:?} and {looks} looks: {}", self.story())]
pub struct NotMet {
    limit: Duration,
    looks: u64,
    seen: Option<String>,
    stuck: bool,
}

impl NotMet {
    /// The time given.
    pub fn limit(&self) -> Duration {
        self.limit
    }

    /// Number of looks that came to an end.
    pub fn looks(&self) -> u64 {
        self.looks
    }

    /// The last thing seen, as its `Debug` prints it; `None` when no look came to an end.
    pub fn seen(&self) -> Option<&str> {
        self.seen.as_deref()
    }

    fn story(&self) -> String {
        match (&self.seen, self.stuck) {
            (Some(seen), false) => format!("last seen was {seen}"),
            (Some(seen), true) => format!("last seen was {seen}, and the next look did not end"),
            (None, _) => "the first look did not end".to_owned(),
        }
    }
}

/// Looks again and again, every 10 ms, until `holds` is true for what it sees, and returns that. It looks at
/// least once, and a look that does not end is given up at the `limit`.
///
/// It goes by tokio's clock, so that under paused time the pauses take none.
///
/// # Errors
/// [`NotMet`] once `limit` is over, with the number of looks and what was seen last.
///
/// # Cancel safety
/// This function is cancel safe: a look that is under way is dropped.
///
/// # Examples
/// ```
/// use docent::testkit::eventually;
/// use std::time::Duration;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let mut jobs = 0;
/// let look = async || {
///     jobs += 1; // or ask a client, a service, a queue
///     jobs
/// };
/// let seen = eventually(Duration::from_secs(5), look, |jobs| *jobs >= 3).await;
/// assert_eq!(seen, Ok(3));
///
/// let never = eventually(Duration::ZERO, async || "starting", |state| *state == "ready").await;
/// assert_eq!(never.unwrap_err().seen(), Some("\"starting\""));
/// # }
/// ```
pub async fn eventually<T: fmt::Debug>(
    limit: Duration,
    mut look: impl AsyncFnMut() -> T,
    holds: impl Fn(&T) -> bool,
) -> Result<T, NotMet> {
    let start = Instant::now();
    let deadline = start.checked_add(limit).unwrap_or_else(|| start + FOR_EVER);
    let (mut looks, mut last) = (0, None);
    loop {
        let Ok(seen) = timeout_at(deadline, look()).await else {
            return Err(not_met(limit, looks, last.as_ref(), true));
        };
        looks += 1;
        if holds(&seen) {
            return Ok(seen);
        }
        if Instant::now() >= deadline {
            return Err(not_met(limit, looks, Some(&seen), false));
        }
        last = Some(seen);
        sleep_until(deadline.min(Instant::now() + PAUSE)).await;
    }
}

fn not_met(limit: Duration, looks: u64, seen: Option<&impl fmt::Debug>, stuck: bool) -> NotMet {
    NotMet { limit, looks, seen: seen.map(|seen| format!("{seen:?}")), stuck }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[tokio::test(start_paused = true)]
    async fn a_condition_that_holds_at_once_takes_no_time() {
        let start = Instant::now();
        assert_eq!(eventually(Duration::ZERO, async || 1, |_| true).await, Ok(1));
        assert_eq!(start.elapsed(), Duration::ZERO);
    }

    #[tokio::test(start_paused = true)]
    async fn the_wait_ends_at_its_limit_with_what_was_seen_last() {
        let (start, mut number) = (Instant::now(), 0);
        let look = async || {
            number += 1;
            number
        };
        let error = eventually(SECOND, look, |_| false).await.unwrap_err();
        assert_eq!(start.elapsed(), SECOND);
        assert_eq!(error.to_string(), "it does not hold after 1s and 101 looks: last seen was 101");
    }

    #[tokio::test(start_paused = true)]
    async fn a_look_that_hangs_is_given_up_and_told() {
        let look = async || std::future::pending::<u8>().await;
        let error = eventually(SECOND, look, |_| true).await.unwrap_err();
        assert_eq!(error.to_string(), "it does not hold after 1s and 0 looks: the first look did not end");
        let mut first = true;
        let look = async || if std::mem::take(&mut first) { 7 } else { std::future::pending().await };
        let error = eventually(SECOND, look, |_| false).await.unwrap_err();
        let text = "it does not hold after 1s and 1 looks: last seen was 7, and the next look did not end";
        assert_eq!(error.to_string(), text);
    }

    #[tokio::test(start_paused = true)]
    async fn the_longest_limit_is_no_panic() {
        assert_eq!(eventually(Duration::MAX, async || 1, |_| true).await, Ok(1));
    }
}
