//! Progress of a wait, on a terminal: the holder, since when, and our place in the line.

use super::kind::Lock;
use crate::output::Output;
use docent::locks::Participant;
use std::convert::Infallible;
use std::time::Duration;
use tokio::time::sleep;

/// Time until the first look: a lock that is free is acquired before that.
const FIRST: Duration = Duration::from_millis(500);

/// Time between two looks.
const BETWEEN: Duration = Duration::from_secs(2);

/// Tells whenever holder or place change, for as long as it is polled.
pub(super) async fn tell(output: &Output, lock: &Lock, path: &str, own_session: Option<i64>) -> Infallible {
    let mut told = None;
    sleep(FIRST).await;
    loop {
        if output.shows_progress()
            && let Ok(line) = lock.participants().await
            && let seen = key(&line, own_session)
            && told.as_ref() != Some(&seen)
        {
            output.progress(text(path, &line, own_session));
            told = Some(seen);
        }
        sleep(BETWEEN).await;
    }
}

/// The part of a line that is news when it changes.
fn key(line: &[Participant], own_session: Option<i64>) -> (Option<String>, Option<usize>) {
    (line.iter().find(|one| one.holds).map(|one| one.name.clone()), ahead(line, own_session))
}

/// Number of those ahead of us; `None` while we are not in the line.
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
        holder.unwrap_or_else(|| "nobody holds it".into()),
        place.unwrap_or_default()
    )
}
