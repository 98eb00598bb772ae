//! The inequality that leases rest on, and every pace that follows from it (decision 3).

use crate::time::Timestamp;
use std::time::Duration;

/// Time for the errors that no rule counts: of clocks and timers, and on the way between servers.
const SLACK: Duration = Duration::from_millis(100);

/// Times of a session, which follow from its timeout and the tick of its servers.
///
/// The servers' leader ends a session no earlier than a timeout after it last heard of it. It hears of a
/// request that was sent over another server one *relay* after that server did, at the latest; a whole tick
/// is counted for it. So when a write that was sent at `sent` is acknowledged, and `heard` is the send time
/// of the newest request that had been answered for a relay by then, the leader had heard of the session no
/// earlier than `heard` when it applied the write, whatever happened to that server since:
///
/// ```text
/// end of the lease = min(sent + timeout − margin, heard + timeout − slack)
/// ```
///
/// The second term alone makes it safe. The first keeps back as much of the timeout as a client that sends
/// something each [`pulse`](Self::pulse) has between `heard` and `sent`, so that for such a client both terms
/// are the same.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Timing {
    pub(crate) timeout: Duration,
    pub(crate) tick: Duration,
}

impl Timing {
    /// The part of the timeout that a lease leaves unused: a third, or what a pulse and a relay may hide.
    pub(crate) fn margin(self) -> Duration {
        if planted!(MarginWithoutRelayLag) {
            return SLACK;
        }
        // A client that sends something each pulse and is answered at once has `heard` no earlier than a
        // pulse and a relay before `sent`: with this margin the second term of the lease cuts nothing for it.
        // A third leaves time for work to stop where the timeout is long.
        (self.timeout / 3).max(self.pulse().saturating_add(self.relay()).saturating_add(SLACK))
    }

    /// Time that a write counts as sent at: earlier than `sent` when the servers had `heard` little before
    /// it.
    pub(crate) fn proof(self, sent: Timestamp, heard: Timestamp) -> Timestamp {
        if planted!(StaleByTimeout | MarginWithoutRelayLag) {
            return sent;
        }
        // `lease_end` adds the timeout less the margin: this makes `heard + timeout − slack` of the second
        // term.
        sent.min(heard + self.margin().saturating_sub(SLACK))
    }

    /// The end of a lease that such a [`proof`](Self::proof) gives.
    pub(crate) fn lease_end(self, proof: Timestamp) -> Timestamp {
        proof + self.timeout.saturating_sub(self.margin())
    }

    /// Longest time until servers have told their leader which sessions they have heard of. Half a tick is
    /// usual; a whole one covers observers that follow another observer.
    pub(crate) fn relay(self) -> Duration {
        self.tick
    }

    /// Pace of a client: the longest time between two requests, the time from a write to the next one that
    /// keeps a lease, and the time for which a write is fresh enough to begin another hold.
    pub(crate) fn pulse(self) -> Duration {
        self.timeout / 6
    }

    /// The longest silence on a link, of the server or of the client itself: two pulses. After a longer one
    /// the session is attached anew, of which the leader hears at once: a write over the old link would prove
    /// little.
    pub(crate) fn silence(self) -> Duration {
        self.timeout / 3
    }

    /// Longest time that a client may stand still without having to attach its session anew. A pulse that is
    /// late by less than another pulse costs nothing.
    pub(crate) fn standstill(self) -> Duration {
        if planted!(StaleByTimeout) {
            return self.silence().max(self.timeout.saturating_sub(self.relay() + SLACK));
        }
        self.silence()
    }

    /// Pause before a request that proved nothing is sent again.
    pub(crate) fn pause(self) -> Duration {
        self.timeout / 24
    }
}

#[cfg(test)]
mod tests;
