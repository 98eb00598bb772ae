//! Cases that run a few at a time and fail together.

use futures_util::future::{FutureExt, LocalBoxFuture};
use futures_util::stream::{self, StreamExt};
use std::fmt;
use std::future::Future;
use std::pin::pin;
use std::time::{Duration, Instant};

/// Cases that run at the same time by default.
const WIDTH: usize = 8;
/// Longer than all steps of a case together.
const STUCK: Duration = Duration::from_secs(120);
/// Longer than anything a case waits for.
pub(super) const PATIENCE: Duration = Duration::from_secs(20);

/// What takes no longer when nothing is wrong and the process is not paused, well below the lease of a long session.
pub(super) const PROMPT: Duration = Duration::from_secs(5);

/// What went wrong in a case.
pub(super) type Failure = String;

/// Cases of a battery.
pub(super) struct Cases<'a> {
    width: usize,
    cases: Vec<LocalBoxFuture<'a, Result<(), Failure>>>,
}

impl<'a> Cases<'a> {
    pub(super) fn new() -> Self {
        Self { width: WIDTH, cases: Vec::new() }
    }

    /// As many at a time.
    pub(super) fn at_a_time(width: usize) -> Self {
        Self { width, ..Self::new() }
    }

    pub(super) fn add(
        &mut self,
        name: impl fmt::Display,
        case: impl Future<Output = Result<(), Failure>> + 'a,
    ) {
        let name = name.to_string();
        let case = async move { case.await.map_err(|failure| format!("{name}: {failure}")) };
        self.cases.push(case.boxed_local());
    }

    /// Runs them all.
    ///
    /// # Panics
    /// When some failed, with all of these.
    pub(super) async fn run(self, battery: &str) {
        let count = self.cases.len();
        let mut results = stream::iter(self.cases).buffer_unordered(self.width);
        let mut failures = Vec::new();
        // Each step of a case has a bound of its own. All cases together take as long as they take.
        while let Some(result) = tokio::time::timeout(STUCK, results.next()).await.expect("some case ends") {
            failures.extend(result.err());
        }
        assert!(
            failures.is_empty(),
            "{} of {count} cases of {battery} failed:\n{}",
            failures.len(),
            failures.join("\n")
        );
    }
}

/// Waits for `future`, but not for ever.
pub(super) async fn soon<F: Future>(what: &str, future: F) -> Result<F::Output, Failure> {
    tokio::time::timeout(PATIENCE, future)
        .await
        .map_err(|_| format!("{what} did not end within {PATIENCE:?}"))
}

/// Fails a case unless `met`.
pub(super) fn ensure(met: bool, failure: impl FnOnce() -> Failure) -> Result<(), Failure> {
    if met { Ok(()) } else { Err(failure()) }
}

/// Runs `future`, and measures the longest time for which nothing on this thread was run: a busy machine pauses processes.
pub(super) async fn longest_pause<F: Future>(future: F) -> (F::Output, Duration) {
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
