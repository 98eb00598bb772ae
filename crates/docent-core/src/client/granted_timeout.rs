//! Warnings about session timeouts that are not what the caller asked for, or too short for a lease.

use super::Config;
use crate::guard::SessionGeneration;
use crate::operation::Shared;
use std::time::Duration;

impl Config {
    /// Returns true if a session timeout is too short for a lease, and the caller has not accepted that.
    pub(super) fn refuses_leases(&self, timeout: Duration) -> bool {
        timeout < self.server_tick.saturating_mul(4) && !self.accept_short_lease
    }
}

/// Warns, before there is a session, if the requested timeout is too short for a lease.
pub(super) fn check_requested(shared: &Shared) {
    let config = &shared.config;
    if !config.refuses_leases(config.session_timeout) {
        return;
    }
    // Event: The client asks for a session timeout of less than four ticks of the servers, which is too short
    // for a safe lease. Unless the servers grant more, locks, elections and other guards fail with
    // `ShortLease`.
    // Action: Raise the session timeout to four times the servers' `tickTime`. If their `tickTime` is below
    // the client's `server_tick`, set `server_tick` to it.
    tracing::warn!(
        target: "docent::client",
        client = %shared.label,
        requested_seconds = config.session_timeout.as_secs_f64(),
        tick_seconds = config.server_tick.as_secs_f64(),
        "the session timeout is shorter than four server ticks; refusing locks unless the servers grant more"
    );
}

/// Warns, once for each value, if the servers granted another timeout than requested.
pub(super) fn check_granted(shared: &Shared, generation: &SessionGeneration) {
    let (requested, granted) = (shared.config.session_timeout, generation.lease.timeout());
    if !shared.differs_from_known_timeout(granted) {
        return;
    }
    let client = &shared.label;
    let (requested_seconds, granted_seconds) = (requested.as_secs_f64(), granted.as_secs_f64());
    if shared.config.refuses_leases(granted) {
        // Event: The servers granted a session timeout of less than four of their ticks, which is too short
        // for a safe lease. Locks, elections and other guards fail with `ShortLease`, unless the client was
        // built with `accept_short_lease`.
        // Action: Raise the session timeout, and the servers' `maxSessionTimeout` if it is lower. If the
        // servers' `tickTime` is below the client's `server_tick`, set `server_tick` to it.
        tracing::warn!(
            target: "docent::client",
            %client,
            requested_seconds,
            granted_seconds,
            tick_seconds = shared.config.server_tick.as_secs_f64(),
            "the granted session timeout is shorter than four server ticks; refusing locks"
        );
    } else if granted < requested {
        // Event: The servers granted a shorter session timeout than requested: their `maxSessionTimeout`,
        // which is 20 ticks by default. The servers expire the session, with its locks, after that shorter
        // time.
        // Action: Request at most the servers' `maxSessionTimeout`, or raise it on every server.
        tracing::warn!(
            target: "docent::client",
            %client,
            requested_seconds,
            granted_seconds,
            "the servers limited the session timeout to their maxSessionTimeout"
        );
    } else {
        // Event: The servers granted a longer session timeout than requested: their `minSessionTimeout`,
        // which is two ticks by default. Other clients wait that long for the locks of a process that died.
        // Action: Request at least the servers' `minSessionTimeout`, or lower it on every server.
        tracing::warn!(
            target: "docent::client",
            %client,
            requested_seconds,
            granted_seconds,
            "the servers raised the session timeout to their minSessionTimeout"
        );
    }
}
