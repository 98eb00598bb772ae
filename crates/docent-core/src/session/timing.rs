//! The inequality on which leases rest, and every interval that follows from it (decision 3).

use crate::time::Timestamp;
use std::time::Duration;

/// Allowance for errors that no rule covers: clocks, timers, and delays between servers.
const SLACK: Duration = Duration::from_millis(100);

/// Times of a session, derived from its timeout and the tick of its servers.
///
/// The servers' leader expires a session no earlier than a timeout after it last heard from it. If a request
/// was sent over another server, the leader learns of it at most one *relay* after that server did; a relay
/// is counted as a whole tick. Suppose a write sent at `sent` is acknowledged, and `leader_contact` is the
/// send time of the newest request that had been answered for a relay at that time. Then the leader had last
/// heard from the session at `leader_contact` or later when it applied the write, whatever has happened to
/// that server since:
///
/// ```text
/// end of the lease = min(sent + timeout − margin, leader_contact + timeout − slack)
/// ```
///
/// The second term alone guarantees safety. The first term holds back as much of the timeout as lies between
/// `leader_contact` and `sent` for a client that sends something each [`pulse`](Self::pulse). For such a
/// client both terms are equal.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Timing {
    pub(crate) timeout: Duration,
    pub(crate) tick: Duration,
}

impl Timing {
    /// Returns the part of the timeout that a lease leaves unused: a third, or what a pulse and a relay may
    /// hide.
    pub(crate) fn margin(self) -> Duration {
        if planted!(MarginWithoutRelayLag) {
            return SLACK;
        }
        // A client that sends something each pulse and gets prompt answers has a `leader_contact` at most a
        // pulse and a relay before `sent`. With this margin the second term of the lease takes nothing away
        // from such a client. A third leaves time for work to stop if the timeout is long.
        (self.timeout / 3).max(self.pulse().saturating_add(self.relay()).saturating_add(SLACK))
    }

    /// Returns the time at which a write counts as sent. It is earlier than `sent` if the last contact with
    /// the leader was long before the write.
    pub(crate) fn proof(self, sent: Timestamp, leader_contact: Timestamp) -> Timestamp {
        if planted!(StaleByTimeout | MarginWithoutRelayLag) {
            return sent;
        }
        // `lease_end` adds the timeout minus the margin, so this yields `leader_contact + timeout − slack` of
        // the second term.
        sent.min(leader_contact + self.margin().saturating_sub(SLACK))
    }

    /// Returns the end of a lease that such a [`proof`](Self::proof) gives.
    pub(crate) fn lease_end(self, proof: Timestamp) -> Timestamp {
        proof + self.timeout.saturating_sub(self.margin())
    }

    /// Returns the maximum time until servers have reported to their leader which sessions they heard from.
    /// Half a tick is usual; a whole one covers observers that follow another observer.
    pub(crate) fn relay(self) -> Duration {
        self.tick
    }

    /// Returns the pulse of a client. It is the longest time between two requests and the time from one
    /// lease-keeping write to the next. It is also the time for which a write is recent enough to begin
    /// another hold.
    pub(crate) fn pulse(self) -> Duration {
        self.timeout / 6
    }

    /// Returns the longest silence on a link, of the server or of the client itself: two pulses. After a
    /// longer silence the client re-attaches the session, and the leader learns of that immediately. A write
    /// over the old link would prove little.
    pub(crate) fn silence(self) -> Duration {
        self.timeout / 3
    }

    /// Returns the maximum pause after which a client can still use its session without re-attaching it. A
    /// pulse that is late by less than another pulse costs nothing.
    pub(crate) fn longest_pause(self) -> Duration {
        if planted!(StaleByTimeout) {
            return self.silence().max(self.timeout.saturating_sub(self.relay() + SLACK));
        }
        self.silence()
    }

    /// Returns the pause before a request that proved nothing is sent again.
    pub(crate) fn pause(self) -> Duration {
        self.timeout / 24
    }
}

#[cfg(test)]
mod tests;
