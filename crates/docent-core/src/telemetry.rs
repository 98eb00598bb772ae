//! Counters and timers of the feature `metrics`, through the `metrics` facade. Without the feature they do
//! nothing.
//!
//! Labels are recipe, operation, outcome and reason: their values are few and fixed; and names that users
//! chose for gauges. A path is never a label.

#![cfg_attr(
    not(feature = "metrics"),
    allow(unused_variables, reason = "nothing is counted without the feature")
)]

use crate::error::Error;
use crate::guard::LostReason;
use crate::setup::ConnectionState;
#[cfg(feature = "metrics")]
use crate::task::call_hook;
use std::cell::OnceCell;
use std::time::Duration;
use tokio::runtime::Handle;

thread_local! {
    /// Runtime that records for a thread which must not be held up.
    static RECORDER: OnceCell<Handle> = const { OnceCell::new() };
}

/// From now on a task of `runtime` records what this thread counts.
pub(crate) fn record_on(runtime: Handle) {
    // Once set it stays: a thread is told of one runtime.
    let _ = RECORDER.try_with(|recorder| recorder.set(runtime));
}

/// Calls the program's recorder of metrics, which is somebody else's code.
#[cfg(feature = "metrics")]
fn recorded(record: impl FnOnce() + Send + 'static) {
    let call = || {
        let _ = call_hook("recorder of metrics", "", record);
    };
    match RECORDER.try_with(|recorder| recorder.get().cloned()) {
        Ok(Some(runtime)) => drop(runtime.spawn(async move { call() })),
        _ => call(),
    }
}

/// The client's state changed.
pub(crate) fn connection(state: ConnectionState) {
    #[cfg(feature = "metrics")]
    {
        let value = match state {
            ConnectionState::Connecting => 0,
            ConnectionState::Connected => 1,
            ConnectionState::Suspended => 2,
            ConnectionState::Lost => 3,
            ConnectionState::Closed => 4,
            ConnectionState::RolledBack => 5,
            ConnectionState::AuthFailed => 6,
        };
        recorded(move || {
            metrics::gauge!("docent_connection_state").set(value);
            match state {
                ConnectionState::Connected => metrics::counter!("docent_connected_total").increment(1),
                ConnectionState::Suspended => metrics::counter!("docent_suspended_total").increment(1),
                ConnectionState::Lost | ConnectionState::AuthFailed => {
                    metrics::counter!("docent_session_lost_total").increment(1);
                }
                _ => {}
            }
        });
    }
}

/// Start time of something that is timed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Started {
    #[cfg(feature = "metrics")]
    at: std::time::Instant,
}

impl Started {
    pub(crate) fn now() -> Self {
        Self {
            #[cfg(feature = "metrics")]
            at: std::time::Instant::now(),
        }
    }
}

/// A logical operation ended: with an answer, which may be a refusal, or with an error of the client.
pub(crate) fn operation<T>(operation: &'static str, started: Started, result: &Result<T, Error>) {
    #[cfg(feature = "metrics")]
    {
        let outcome = match result {
            Ok(_) => "answered",
            Err(error) if error.may_have_applied() => "unknown",
            Err(_) => "failed",
        };
        let duration = started.at.elapsed().as_secs_f64();
        recorded(move || {
            metrics::histogram!("docent_op_duration_seconds", "op" => operation, "outcome" => outcome)
                .record(duration);
        });
    }
}

/// An operation is tried again.
pub(crate) fn retry(operation: &'static str) {
    #[cfg(feature = "metrics")]
    recorded(move || metrics::counter!("docent_retries_total", "op" => operation).increment(1));
}

/// A guard began, after a wait in its line.
pub(crate) fn acquired(recipe: &'static str, waited: Duration) {
    #[cfg(feature = "metrics")]
    recorded(move || {
        metrics::histogram!("docent_lock_wait_seconds", "recipe" => recipe).record(waited.as_secs_f64());
        metrics::gauge!("docent_locks_held", "recipe" => recipe).increment(1);
    });
}

/// A guard ended: released, or lost for a reason.
pub(crate) fn over(recipe: &'static str, held: Duration, lost: Option<LostReason>) {
    #[cfg(feature = "metrics")]
    recorded(move || {
        metrics::histogram!("docent_lock_held_seconds", "recipe" => recipe).record(held.as_secs_f64());
        metrics::gauge!("docent_locks_held", "recipe" => recipe).decrement(1);
        if let Some(reason) = lost {
            let reason = match reason {
                LostReason::LeaseExpired => "lease_expired",
                LostReason::SessionExpired => "session_expired",
                LostReason::SessionAbandoned => "session_abandoned",
                LostReason::AuthFailed => "auth_failed",
                LostReason::NodeDeleted => "node_deleted",
                LostReason::Closed => "closed",
                LostReason::Released => "released",
            };
            metrics::counter!("docent_lock_lost_total", "recipe" => recipe, "reason" => reason).increment(1);
        }
    });
}

/// A delete that must happen was begun, or is done.
pub(crate) fn cleanups(open: usize) {
    #[cfg(feature = "metrics")]
    {
        let open = u32::try_from(open).unwrap_or(u32::MAX);
        recorded(move || metrics::gauge!("docent_cleanups_open").set(open));
    }
}

/// The session's task came so much after the time it had asked for: code that blocks the runtime's threads
/// delays it.
pub(crate) fn late(lateness: Duration) {
    #[cfg(feature = "metrics")]
    recorded(move || metrics::histogram!("docent_session_lateness_seconds").record(lateness.as_secs_f64()));
}

/// Sets a gauge of a recipe, which is told from others of the kind by a label with a name that the user
/// chose. Does nothing without the feature `metrics`.
pub fn gauge(gauge: &'static str, label: &'static str, name: &str, value: f64) {
    #[cfg(feature = "metrics")]
    {
        let name = name.to_owned();
        recorded(move || metrics::gauge!(gauge, label => name).set(value));
    }
}
