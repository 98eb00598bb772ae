//! Events of a client, each with the metrics that count it. `client` is its label.

use super::Started;
#[cfg(feature = "metrics")]
use super::{catalogue as c, metric::key, recorder::recorded};
use crate::error::Error;
use std::sync::Arc;
use std::time::Duration;

/// The client's state is the one of this number.
pub(crate) fn state(client: &Arc<str>, number: u8) {
    #[cfg(feature = "metrics")]
    {
        let key = key(&c::CONNECTION_STATE, client, []);
        recorded(move || c::CONNECTION_STATE.set(&key, f64::from(number)));
    }
}

/// A session was attached to a server.
pub(crate) fn connected(client: &Arc<str>) {
    #[cfg(feature = "metrics")]
    {
        let key = key(&c::CONNECTED, client, []);
        recorded(move || c::CONNECTED.increment(&key));
    }
}

/// The link of a session was lost.
pub(crate) fn suspended(client: &Arc<str>) {
    #[cfg(feature = "metrics")]
    {
        let key = key(&c::SUSPENDED, client, []);
        recorded(move || c::SUSPENDED.increment(&key));
    }
}

/// A session ended against the client's will, for the `reason` that is its label.
pub(crate) fn session_lost(client: &Arc<str>, reason: &'static str) {
    #[cfg(feature = "metrics")]
    {
        let key = key(&c::SESSION_LOST, client, [("reason", reason)]);
        recorded(move || c::SESSION_LOST.increment(&key));
    }
}

/// An operation ended: with an answer, which may be a refusal, or with an error of the client.
pub(crate) fn operation<T>(
    client: &Arc<str>,
    operation: &'static str,
    started: Started,
    result: &Result<T, Error>,
) {
    #[cfg(feature = "metrics")]
    {
        let duration = started.at.elapsed().as_secs_f64();
        let key = key(&c::OP_DURATION, client, [("op", operation), ("outcome", outcome(result))]);
        recorded(move || c::OP_DURATION.record(&key, duration));
    }
}

/// Outcome of an operation, as a label.
pub(super) fn outcome<T>(result: &Result<T, Error>) -> &'static str {
    match result {
        Err(error) if error.may_have_applied() => "unknown",
        Err(error) if !error.is_refusal() => "failed",
        _ => "answered",
    }
}

/// An operation is tried again.
pub(crate) fn retry(client: &Arc<str>, operation: &'static str) {
    #[cfg(feature = "metrics")]
    {
        let key = key(&c::RETRIES, client, [("op", operation)]);
        recorded(move || c::RETRIES.increment(&key));
    }
}

/// A guard began, after a wait in its line.
pub(crate) fn acquired(client: &Arc<str>, recipe: &'static str, waited: Duration) {
    #[cfg(feature = "metrics")]
    {
        let client = Arc::clone(client);
        let labels = [("recipe", recipe)];
        recorded(move || {
            c::LOCK_WAIT.record(&key(&c::LOCK_WAIT, &client, labels), waited.as_secs_f64());
            c::LOCKS_HELD.add(&key(&c::LOCKS_HELD, &client, labels), 1.0);
        });
    }
}

/// A guard began with the ticket of another task of the process.
pub(crate) fn passed_on(client: &Arc<str>, recipe: &'static str) {
    #[cfg(feature = "metrics")]
    {
        let key = key(&c::LOCK_PASSED_ON, client, [("recipe", recipe)]);
        recorded(move || c::LOCK_PASSED_ON.increment(&key));
    }
}

/// A guard ended: released, or lost for the reason that is its label.
pub(crate) fn over(client: &Arc<str>, recipe: &'static str, held: Duration, lost: Option<&'static str>) {
    #[cfg(feature = "metrics")]
    {
        let client = Arc::clone(client);
        let labels = [("recipe", recipe)];
        recorded(move || {
            c::LOCK_HELD.record(&key(&c::LOCK_HELD, &client, labels), held.as_secs_f64());
            c::LOCKS_HELD.add(&key(&c::LOCKS_HELD, &client, labels), -1.0);
            if let Some(reason) = lost {
                let labels = [("recipe", recipe), ("reason", reason)];
                c::LOCK_LOST.increment(&key(&c::LOCK_LOST, &client, labels));
            }
        });
    }
}

/// A delete that must happen was begun, or is done.
pub(crate) fn cleanups(client: &Arc<str>, open: usize) {
    #[cfg(feature = "metrics")]
    {
        let open = u32::try_from(open).unwrap_or(u32::MAX);
        let key = key(&c::CLEANUPS, client, []);
        recorded(move || c::CLEANUPS.set(&key, f64::from(open)));
    }
}

/// The session's task came so much after the time it had asked for: code that blocks the runtime's threads
/// delays it.
pub(crate) fn late(client: &Arc<str>, lateness: Duration) {
    #[cfg(feature = "metrics")]
    {
        let key = key(&c::LATENESS, client, []);
        recorded(move || c::LATENESS.record(&key, lateness.as_secs_f64()));
    }
}

/// So many nodes more, or less, are to be kept.
pub(crate) fn kept_wanted(client: &Arc<str>, more: f64) {
    #[cfg(feature = "metrics")]
    {
        let key = key(&c::KEPT_WANTED, client, []);
        recorded(move || c::KEPT_WANTED.add(&key, more));
    }
}

/// So many kept nodes more, or less, are present.
pub(crate) fn kept_present(client: &Arc<str>, more: f64) {
    #[cfg(feature = "metrics")]
    {
        let key = key(&c::KEPT_PRESENT, client, []);
        recorded(move || c::KEPT_PRESENT.add(&key, more));
    }
}
