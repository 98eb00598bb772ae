//! The metrics of core. Those of recipes stand where they are counted.

use super::metric::{Metric, MetricUnit};

pub(super) static CONNECTION_STATE: Metric = Metric::gauge(
    "docent_connection_state",
    MetricUnit::None,
    "State: 0 connecting, 1 connected, 2 suspended, 3 lost, 4 closed, 5 rolled back, 6 credentials refused.",
);
pub(super) static CONNECTED: Metric = Metric::counter(
    "docent_connected_total",
    MetricUnit::Count,
    "Times that a session was attached to a server.",
);
pub(super) static SUSPENDED: Metric = Metric::counter(
    "docent_suspended_total",
    MetricUnit::Count,
    "Times that the link of a session was lost.",
);
pub(super) static SESSION_LOST: Metric = Metric::counter(
    "docent_session_lost_total",
    MetricUnit::Count,
    "Sessions that ended against the client's will.",
);
pub(super) static LATENESS: Metric = Metric::histogram(
    "docent_session_lateness_seconds",
    MetricUnit::Seconds,
    "How late the session's task was run: blocked threads, or a process that stood still.",
);
pub(super) static OP_DURATION: Metric = Metric::histogram(
    "docent_op_duration_seconds",
    MetricUnit::Seconds,
    "Duration of an operation, with waiting for a link and retries.",
);
pub(super) static RETRIES: Metric =
    Metric::counter("docent_retries_total", MetricUnit::Count, "Further attempts of operations.");
pub(super) static LOCK_WAIT: Metric = Metric::histogram(
    "docent_lock_wait_seconds",
    MetricUnit::Seconds,
    "Time in the line before a guard was granted.",
);
pub(super) static LOCK_HELD: Metric =
    Metric::histogram("docent_lock_held_seconds", MetricUnit::Seconds, "Time for which a guard was held.");
pub(super) static LOCKS_HELD: Metric =
    Metric::gauge("docent_locks_held", MetricUnit::Count, "Guards that are held now.");
pub(super) static LOCK_LOST: Metric = Metric::counter(
    "docent_lock_lost_total",
    MetricUnit::Count,
    "Guards that were lost before they were released.",
);
pub(super) static LOCK_PASSED_ON: Metric = Metric::counter(
    "docent_lock_passed_on_total",
    MetricUnit::Count,
    "Guards that began with the ticket of another task of the process.",
);
pub(super) static CLEANUPS: Metric = Metric::gauge(
    "docent_cleanups_open",
    MetricUnit::Count,
    "Deletes of own nodes that are still to be done.",
);
pub(super) static KEPT_WANTED: Metric = Metric::gauge(
    "docent_kept_nodes_wanted",
    MetricUnit::Count,
    "Nodes that are to be kept present: registrations, memberships and others.",
);
pub(super) static KEPT_PRESENT: Metric = Metric::gauge(
    "docent_kept_nodes_present",
    MetricUnit::Count,
    "Kept nodes that the servers have, in the present session.",
);

/// All of the client's metrics, and those of its recipes that hold.
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

/// Operations that are timed.
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

/// Operations of core that are tried again, besides those that are timed.
pub(super) const RETRIED: [&str; 3] = ["check_clock", "downgrade", "verify"];

/// Outcomes of operations.
pub(super) const OUTCOMES: [&str; 3] = ["answered", "failed", "unknown"];

/// Reasons for which sessions are lost.
pub(super) const ENDS: [&str; 4] = ["abandoned", "auth_failed", "expired", "rolled_back"];

/// Reasons for which guards are lost.
pub(super) const LOSSES: [&str; 6] =
    ["auth_failed", "closed", "lease_expired", "node_deleted", "session_abandoned", "session_expired"];
