//! Cases that run several at a time and report their failures together.

use futures_util::future::{FutureExt, LocalBoxFuture};
use futures_util::stream::{self, StreamExt};
use std::fmt;
use std::future::Future;
use std::pin::pin;
use std::time::Duration;
use tokio::time::Instant;

/// Default number of cases that run at the same time.
const WIDTH: usize = 8;
/// Upper bound on the duration of a case with all its attempts.
const STUCK: Duration = Duration::from_secs(300);
/// Number of attempts to play a round for a request that the round may or may not send.
const TRIES: usize = 4;
/// Time limit above all waits of a case.
pub(super) const PATIENCE: Duration = Duration::from_secs(20);

/// Time limit of a step without a fault in a process that is not paused, well below the lease of a long
/// session.
pub(super) const PROMPT: Duration = Duration::from_secs(5);

/// Failure of a case, as a sentence.
pub(super) type Failure = String;

/// Cases of a battery.
pub(super) struct Cases<'a> {
    width: usize,
    cases: Vec<LocalBoxFuture<'a, Result<Done, Failure>>>,
}

/// Result of a case that did not fail.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Done {
    /// The case met its expectations.
    Met,
    /// The case with this name could not take place, because its request was not sent.
    Unsent(String),
}

impl<'a> Cases<'a> {
    pub(super) fn new() -> Self {
        Self { width: WIDTH, cases: Vec::new() }
    }

    /// Returns the same cases, of which `width` run at a time.
    pub(super) fn at_a_time(width: usize) -> Self {
        Self { width, ..Self::new() }
    }

    pub(super) fn add(
        &mut self,
        name: impl fmt::Display,
        case: impl Future<Output = Result<(), Failure>> + 'a,
    ) {
        let name = name.to_string();
        let case = async move {
            case.await.map_err(|failure| format!("{name}: {failure}"))?;
            Ok(Done::Met)
        };
        self.cases.push(case.boxed_local());
    }

    /// Adds a case about one request of a round. `case` plays the round and returns true if it sent the
    /// request. The requests of a round depend on the order of watch events and replies, so a round that did
    /// not send this request is played again.
    pub(super) fn add_request<F: Future<Output = Result<bool, Failure>>>(
        &mut self,
        name: impl fmt::Display,
        case: impl Fn() -> F + 'a,
    ) {
        let name = name.to_string();
        let case = async move {
            for _ in 0..TRIES {
                if case().await.map_err(|failure| format!("{name}: {failure}"))? {
                    return Ok(Done::Met);
                }
            }
            Ok(Done::Unsent(name))
        };
        self.cases.push(case.boxed_local());
    }

    /// Runs all cases.
    ///
    /// # Panics
    ///
    /// Panics with all failures if a case failed, and if more than a quarter of the cases could not take
    /// place.
    pub(super) async fn run(self, battery: &str) {
        let count = self.cases.len();
        let mut results = stream::iter(self.cases).buffer_unordered(self.width);
        let (mut failures, mut unsent) = (Vec::new(), Vec::new());
        // Each step of a case has its own bound. All cases together have none.
        while let Some(result) =
            tokio::time::timeout(STUCK, results.next()).await.expect("a case ends within the time limit")
        {
            match result {
                Ok(Done::Met) => {}
                Ok(Done::Unsent(name)) => unsent.push(name),
                Err(failure) => failures.push(failure),
            }
        }
        assert!(
            failures.is_empty(),
            "{} of {count} cases of {battery} failed:\n{}",
            failures.len(),
            failures.join("\n")
        );
        assert!(
            unsent.len() * 4 <= count,
            "in {} of {count} cases of {battery} the request was not sent:\n{}",
            unsent.len(),
            unsent.join("\n")
        );
    }
}

/// Waits for `future`, at most for [`PATIENCE`].
pub(super) async fn soon<F: Future>(what: &str, future: F) -> Result<F::Output, Failure> {
    tokio::time::timeout(PATIENCE, future)
        .await
        .map_err(|_| format!("{what} did not end within {PATIENCE:?}"))
}

/// Fails a case unless `met`.
pub(super) fn ensure(met: bool, failure: impl FnOnce() -> Failure) -> Result<(), Failure> {
    if met { Ok(()) } else { Err(failure()) }
}

/// Runs `future` and measures the longest time for which this thread ran nothing, because a busy machine
/// pauses processes.
pub async fn longest_pause<F: Future>(future: F) -> (F::Output, Duration) {
    const BEAT: Duration = Duration::from_millis(10);
    let mut longest = Duration::ZERO;
    let mut future = pin!(future);
    loop {
        let start = Instant::now();
        let done = tokio::time::timeout(BEAT, &mut future).await;
        longest = longest.max(start.elapsed().saturating_sub(BEAT));
        if let Ok(output) = done {
            return (output, longest);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    /// Runs cases of which the n-th sends its request in round `sent[n]`, if ever.
    async fn run(sent: &[usize]) {
        let mut cases = Cases::new();
        for (number, sent) in sent.iter().enumerate() {
            let rounds = Cell::new(0);
            cases.add_request(number, move || {
                rounds.set(rounds.get() + 1);
                std::future::ready(Ok(rounds.get() == *sent))
            });
        }
        cases.run("rounds").await;
    }

    #[tokio::test]
    async fn rounds_repeat_until_a_rare_request_was_sent() {
        run(&[1, 2, 3, 4]).await;
    }

    #[tokio::test]
    async fn a_few_requests_may_not_be_sent_at_all() {
        run(&[1, 1, 1, TRIES + 1]).await;
    }

    #[tokio::test]
    #[should_panic(expected = "in 2 of 4 cases of rounds the request was not sent:\n2\n3")]
    async fn rounds_without_a_fault_fail() {
        run(&[1, 1, TRIES + 1, TRIES + 1]).await;
    }

    #[tokio::test]
    #[should_panic(expected = "1 of 2 cases of rounds failed:\nsecond: too late")]
    async fn all_failures_are_reported() {
        let mut cases = Cases::new();
        cases.add("first", async { Ok(()) });
        cases.add_request("second", || async { Err("too late".to_owned()) });
        cases.run("rounds").await;
    }
}
