//! Times at which links count as silent and sessions are given up.

use super::{Link, Machine};
use crate::session::timing::Timing;
use crate::session::{LinkError, SessionEnd};
use crate::time::Timestamp;

impl Machine {
    /// Looks at the time. An error means that the link is of no use any more.
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

    /// Time of the next call of [`tick`](Self::tick) or [`write`](Self::write) if nothing else happens.
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

    /// True when nothing was sent over the link for so long, because the process stood still, that a write
    /// sent now would prove little (decision 3). A server passes a write on at once, but tells its leader
    /// only with the next relay that it has heard of the session; until then the leader goes by older news.
    /// Attaching the session anew counts with the leader at once.
    ///
    /// A link that still owes replies is not left: the outcome of those requests would be unknown.
    pub(super) fn is_stale(&self, now: Timestamp) -> bool {
        let idle =
            self.link == Link::Attached && (self.requests.in_flight.is_empty() || planted!(StaleByTimeout));
        idle && now.since(self.last_sent) > self.timing().standstill()
    }

    /// Time at which a link that owes a reply counts as lost: a third of the timeout after the last byte of
    /// any reply, or the whole timeout when bytes trickle in but the reply does not. Events are no reply: a
    /// link that is cut one way only may go on bringing them. After a silence of a third a write still gives
    /// a lease that outlasts the next heartbeat (decision 3).
    fn silent_at(&self) -> Option<Timestamp> {
        let request = self.requests.in_flight.front().map(|in_flight| in_flight.sent_at);
        let oldest = request.into_iter().chain(self.pings.front().copied()).min()?;
        let quiet = self.last_received.max(oldest) + self.timing().silence();
        Some(quiet.min(oldest + self.timeout))
    }

    /// Time at which a session that cannot be re-attached is given up: one timeout after the last possible
    /// lease.
    fn abandon_at(&self) -> Option<Timestamp> {
        let _attached = self.key.as_ref()?;
        let at = self.last_answered + self.timeout.saturating_sub(self.lease.margin()) + self.timeout;
        // By the clock alone a process that was frozen would give the session up at once. It gets a third of
        // the timeout to attach it: the session may live all the same.
        Some(at.max(self.down_since + self.timeout / 3))
    }
}
