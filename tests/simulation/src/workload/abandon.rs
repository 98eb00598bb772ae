use docent_battery::battery;
use std::future::Future;

/// Polls `future` up to `polls` times, but at least once, each when it asked for it, then drops it; `None`
/// when it was not done by then.
pub(super) async fn abandon_at<F: Future>(polls: u32, future: F) -> Option<F::Output> {
    battery::abandon_at(usize::try_from(polls.max(1)).unwrap_or(usize::MAX), future).await
}
