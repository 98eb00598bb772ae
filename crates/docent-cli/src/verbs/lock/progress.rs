//! Progress of a wait on a terminal: the holder, since when, and docent's place in the queue.

use super::kind::Lock;
use crate::output::Output;
use docent::locks::Participant;
use std::convert::Infallible;
use std::time::Duration;
use tokio::time::sleep;

/// Delay before the first check: a free lock is acquired before that.
const FIRST_DELAY: Duration = Duration::from_millis(500);

/// Interval between checks.
const POLL_INTERVAL: Duration = Duration::from_secs(2);

/// Reports changes of the holder or the place, as long as the future is polled.
pub(super) async fn report(output: &Output, lock: &Lock, path: &str, own_session: Option<i64>) -> Infallible {
    let mut reported = None;
    sleep(FIRST_DELAY).await;
    loop {
        if output.shows_progress()
            && let Ok(line) = lock.participants().await
            && let seen = key(&line, own_session)
            && reported.as_ref() != Some(&seen)
        {
            output.progress(text(path, &line, own_session));
            reported = Some(seen);
        }
        sleep(POLL_INTERVAL).await;
    }
}

/// Returns the part of a queue whose changes are reported.
fn key(line: &[Participant], own_session: Option<i64>) -> (Option<String>, Option<usize>) {
    (line.iter().find(|one| one.holds).map(|one| one.name.clone()), ahead(line, own_session))
}

/// Returns the number of contenders ahead of docent, or `None` while docent is not in the queue.
fn ahead(line: &[Participant], own_session: Option<i64>) -> Option<usize> {
    line.iter().position(|one| Some(one.session_id) == own_session)
}

fn text(path: &str, line: &[Participant], own_session: Option<i64>) -> String {
    let holder = line.iter().find(|one| one.holds).map(|holder| {
        let name = holder.owner_text();
        let since = holder.held_for().unwrap_or_else(|| holder.age());
        format!("held by {name} for {} s", since.as_secs())
    });
    let place = ahead(line, own_session).map(|ahead| format!(", {ahead} ahead"));
    format!(
        "waiting for {path}: {}{}",
        holder.unwrap_or_else(|| "no current holder".into()),
        place.unwrap_or_default()
    )
}
