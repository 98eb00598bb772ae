//! The metrics of core. Those of recipes are declared where they are counted.

use super::{Metric, MetricUnit};

pub(super) static CONNECTION_STATE: Metric = Metric::gauge(
    "docent_connection_state",
    MetricUnit::None,
    "State: 0 connecting, 1 connected, 2 suspended, 3 lost, 4 closed, 5 rolled back, 6 credentials refused, 7 read-only.",
);
pub(super) static CONNECTED: Metric = Metric::counter(
    "docent_connected_total",
    MetricUnit::Count,
    "Number of times that a session was attached to a server.",
);
pub(super) static SUSPENDED: Metric = Metric::counter(
    "docent_suspended_total",
    MetricUnit::Count,
    "Number of times that a session lost its connection.",
);
pub(super) static SESSION_LOST: Metric = Metric::counter(
    "docent_session_lost_total",
    MetricUnit::Count,
    "Sessions that ended without being closed by the client.",
);
pub(super) static LATENESS: Metric = Metric::histogram(
    "docent_session_lateness_seconds",
    MetricUnit::Seconds,
    "How late the session task was polled, because of blocked threads or a paused process.",
);
pub(super) static OP_DURATION: Metric = Metric::histogram(
    "docent_op_duration_seconds",
    MetricUnit::Seconds,
    "Duration of an operation, including retries and the wait for a connection.",
);
pub(super) static RETRIES: Metric =
    Metric::counter("docent_retries_total", MetricUnit::Count, "Retries of operations.");
pub(super) static LOCK_WAIT: Metric = Metric::histogram(
    "docent_lock_wait_seconds",
    MetricUnit::Seconds,
    "Time in the line before a guard was granted.",
);
pub(super) static LOCK_HELD: Metric =
    Metric::histogram("docent_lock_held_seconds", MetricUnit::Seconds, "Time for which a guard was held.");
pub(super) static LOCKS_HELD: Metric =
    Metric::gauge("docent_locks_held", MetricUnit::Count, "Guards currently held.");
pub(super) static LOCK_LOST: Metric = Metric::counter(
    "docent_lock_lost_total",
    MetricUnit::Count,
    "Guards that were lost before they were released.",
);
pub(super) static LOCK_PASSED_ON: Metric = Metric::counter(
    "docent_lock_passed_on_total",
    MetricUnit::Count,
    "Guards that took over the ticket of another task in the process.",
);
pub(super) static CLEANUPS: Metric = Metric::gauge(
    "docent_cleanups_open",
    MetricUnit::Count,
    "Deletes of the client's own nodes that are still pending.",
);
pub(super) static KEPT_WANTED: Metric = Metric::gauge(
    "docent_kept_nodes_wanted",
    MetricUnit::Count,
    "Nodes that the client keeps present, such as registrations and memberships, except reports of configurations.",
);
pub(super) static KEPT_PRESENT: Metric = Metric::gauge(
    "docent_kept_nodes_present",
    MetricUnit::Count,
    "Kept nodes that exist in the current session.",
);

/// All metrics of the client, and those of its recipes with guards.
pub(super) static METRICS: [&Metric; 15] = [
    &CONNECTION_STATE,
    &CONNECTED,
    &SUSPENDED,
    &SESSION_LOST,
    &LATENESS,
    &OP_DURATION,
    &RETRIES,
    &LOCK_WAIT,
    &LOCK_HELD,
    &LOCKS_HELD,
    &LOCK_LOST,
    &LOCK_PASSED_ON,
    &CLEANUPS,
    &KEPT_WANTED,
    &KEPT_PRESENT,
];

/// Operations whose duration is measured.
pub(super) const TIMED: [&str; 12] = [
    "acl",
    "children",
    "create",
    "delete",
    "exists",
    "get",
    "set",
    "set_acl",
    "sync",
    "transaction",
    "participants",
    "revoke",
];

/// Operations of core that are retried, in addition to those that are measured.
pub(super) const RETRIED: [&str; 3] = ["check_clock", "downgrade", "verify"];

/// Outcomes of operations.
pub(super) const OUTCOMES: [&str; 3] = ["answered", "failed", "unknown"];

/// Reasons for which sessions are lost.
pub(super) const ENDS: [&str; 4] = ["abandoned", "auth_failed", "expired", "rolled_back"];

/// Reasons for which guards are lost.
pub(super) const LOSSES: [&str; 6] =
    ["auth_failed", "closed", "lease_expired", "node_deleted", "session_abandoned", "session_expired"];
