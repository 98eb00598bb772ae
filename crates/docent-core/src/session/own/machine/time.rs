//! Times at which links count as silent and sessions are given up.

use super::{Link, Machine};
use crate::session::timing::Timing;
use crate::session::{LinkError, SessionEnd};
use crate::time::Timestamp;

impl Machine {
    /// Checks the time. An error means that the link is no longer usable.
    pub(in crate::session) fn tick(&mut self, now: Timestamp) -> Result<(), LinkError> {
        if self.link != Link::Attached && self.abandon_at().is_some_and(|at| now >= at) {
            self.end(SessionEnd::Abandoned);
            return Ok(());
        }
        match self.link {
            Link::Down => Ok(()),
            Link::Handshake { until, .. } | Link::Authenticating { until, .. } if now >= until => {
                Err(LinkError::Handshake)
            }
            Link::Attached if self.is_stale(now) => Err(LinkError::Paused),
            Link::Attached if self.silent_at().is_some_and(|at| now >= at) => Err(LinkError::Silent),
            Link::Handshake { .. } | Link::Authenticating { .. } | Link::Attached => Ok(()),
        }
    }

    /// Returns the time of the next call of [`tick`](Self::tick) or [`write`](Self::write) if nothing else
    /// happens.
    pub(in crate::session) fn next_deadline(&self) -> Option<Timestamp> {
        match self.link {
            Link::Down => self.abandon_at(),
            Link::Handshake { until, .. } | Link::Authenticating { until, .. } => {
                Some(self.abandon_at().map_or(until, |at| at.min(until)))
            }
            Link::Attached => {
                let ping = self.last_sent + self.timing().pulse();
                Some(self.silent_at().map_or(ping, |at| at.min(ping)))
            }
        }
    }

    pub(in crate::session) fn timing(&self) -> Timing {
        Timing { timeout: self.timeout, tick: self.lease.tick() }
    }

    /// Returns true if a pause of the process kept the link idle for so long that a write sent now would
    /// prove little (decision 3). A server forwards a write immediately, but reports the session to its
    /// leader only with the next relay. Until then the leader decides by older information. Re-attaching the
    /// session counts with the leader immediately.
    ///
    /// A link with outstanding replies is not abandoned, because the outcome of those requests would become
    /// unknown.
    pub(super) fn is_stale(&self, now: Timestamp) -> bool {
        let idle =
            self.link == Link::Attached && (self.requests.in_flight.is_empty() || planted!(StaleByTimeout));
        idle && now.since(self.last_sent) > self.timing().longest_pause()
    }

    /// Returns the time at which a link with an outstanding reply counts as lost: a third of the timeout
    /// after the last byte of any reply, or the whole timeout if bytes trickle in but the reply does not
    /// complete. Events do not count as replies, because a link that is cut in one direction may keep
    /// delivering them. After a silence of a third of the timeout, a write still gives a lease that lasts
    /// beyond the next heartbeat (decision 3).
    fn silent_at(&self) -> Option<Timestamp> {
        let request = self.requests.in_flight.front().map(|in_flight| in_flight.sent_at);
        let oldest = request.into_iter().chain(self.pings.front().copied()).min()?;
        let quiet = self.last_received.max(oldest) + self.timing().silence();
        Some(quiet.min(oldest + self.timeout))
    }

    /// Returns the time at which a session that cannot be re-attached is given up: one timeout after the last
    /// possible lease.
    fn abandon_at(&self) -> Option<Timestamp> {
        let _attached = self.key.as_ref()?;
        let at = self.last_answered + self.timeout.saturating_sub(self.lease.margin()) + self.timeout;
        // By the clock alone, a process that was frozen would give up the session immediately. It gets a
        // third of the timeout to re-attach the session, which may still be alive.
        Some(at.max(self.down_since + self.timeout / 3))
    }
}
