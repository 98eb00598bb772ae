use docent_battery::battery;
use std::future::Future;

/// Polls `future` up to `polls` times, but at least once, each time after it was woken, and then drops it.
/// Returns `None` if it was not ready by then.
pub(super) async fn abandon_at<F: Future>(polls: u32, future: F) -> Option<F::Output> {
    battery::abandon_at(usize::try_from(polls.max(1)).unwrap_or(usize::MAX), future).await
}
