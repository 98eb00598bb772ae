//! The inequality that leases rest on, and every pace that follows from it.

use crate::time::Timestamp;
use std::time::Duration;

/// Time for what no rule counts: how exact clocks and timers are, and the way between servers.
const SLACK: Duration = Duration::from_millis(100);

/// Times of a session, which follow from its timeout and the tick of its servers.
///
/// The servers' leader ends a session no earlier than a timeout after it last heard of it. It hears of a request that was sent over
/// another server one *relay* after that server did, at the latest; a whole tick is counted for it. So when a write that was sent
/// at `sent` is acknowledged, and `heard` is the send time of the newest request that had been answered for a relay by then,
/// the leader had heard of the session no earlier than `heard` when it applied the write, whatever happened to that
/// server since:
///
/// ```text
/// end of the lease = min(sent + timeout − margin, heard + timeout − slack)
/// ```
///
/// The second term alone makes it safe. The first keeps some of the timeout back, as much as a client that says something each
/// [`pulse`](Self::pulse) has between its writes and what was heard, so that for such a one both are the same.
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
        (self.timeout / 3).max(self.pulse().saturating_add(self.relay()).saturating_add(SLACK))
    }

    /// The time that a write counts as sent at, which is earlier than `sent` when little was `heard` before it.
    pub(crate) fn proof(self, sent: Timestamp, heard: Timestamp) -> Timestamp {
        if planted!(StaleByTimeout | MarginWithoutRelayLag) {
            return sent;
        }
        sent.min(heard + self.margin().saturating_sub(SLACK))
    }

    /// The end of a lease that such a [`proof`](Self::proof) gives.
    pub(crate) fn lease_end(self, proof: Timestamp) -> Timestamp {
        proof + self.timeout.saturating_sub(self.margin())
    }

    /// The longest time it takes servers to tell their leader of whom they have heard. Half a tick is usual; a whole one covers
    /// observers that follow another observer.
    pub(crate) fn relay(self) -> Duration {
        self.tick
    }

    /// The pace of a client: how often it says something, how long after a write the next is due that keeps a lease, and for how
    /// long that write is fresh enough to begin another hold.
    pub(crate) fn pulse(self) -> Duration {
        self.timeout / 6
    }

    /// The longest silence on a link, of the server or of the client itself: two pulses. After a longer one the session is
    /// attached anew, of which the leader hears at once: what is written over the old link would prove little.
    pub(crate) fn silence(self) -> Duration {
        self.timeout / 3
    }

    /// The longest time that a client may have stood still without having to attach its session anew.
    pub(crate) fn standstill(self) -> Duration {
        if planted!(StaleByTimeout) {
            return self.silence().max(self.timeout.saturating_sub(self.relay() + SLACK));
        }
        self.silence()
    }

    /// A pause before what proved nothing is tried again.
    pub(crate) fn pause(self) -> Duration {
        self.timeout / 24
    }
}

#[cfg(test)]
mod tests;
