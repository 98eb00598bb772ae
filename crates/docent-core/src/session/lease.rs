//! Lease of a session: the time until which the session is certain to live (decision 3).
//!
//! Only an acknowledged *write* proves that a quorum knew the session when the write was sent. Reads, pings
//! and `sync` are answered by a server that may have lost its leader. The lease therefore runs from the send
//! time of the last acknowledged write. It runs from an earlier time if the servers had heard little from the
//! session before that write; [`Timing`] defines the rule.

use crate::session::SessionEnd;
use crate::session::timing::Timing;
use crate::time::Timestamp;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering::Acquire, Ordering::Relaxed, Ordering::Release};
use std::time::Duration;
use tokio::sync::Notify;

/// The lease of one session. Written only by the session's driver, read by every guard.
#[derive(Debug)]
pub(crate) struct Lease {
    tick: Duration,
    /// Smallest timeout that the server ever granted to this session.
    timeout: AtomicU64,
    /// Time at which the newest acknowledged write counts as sent; 0 before the first write.
    proof: AtomicU64,
    /// End of the lease; 0 if there is none.
    deadline: AtomicU64,
    /// Number of times that the lease ran out and began again. A guard from before a lapse stays lost.
    lapses: AtomicU64,
    end: OnceLock<SessionEnd>,
    /// Notified when the deadline moves to an earlier time or a lease begins.
    changed: Notify,
}

/// Mark of a lease at one moment, with which a guard checks that the lease has never run out since.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LeaseMark(u64);

impl Lease {
    pub(crate) fn new(tick: Duration) -> Self {
        Self {
            tick,
            timeout: AtomicU64::new(0),
            proof: AtomicU64::new(0),
            deadline: AtomicU64::new(0),
            lapses: AtomicU64::new(0),
            end: OnceLock::new(),
            changed: Notify::new(),
        }
    }

    /// Records that the session was attached with the timeout `granted`, requested at `sent`. A smaller
    /// timeout than before shortens the running lease to what that request proves, because the server may now
    /// expire the session that much earlier.
    pub(crate) fn attached(&self, granted: Duration, sent: Timestamp) {
        let known = Duration::from_nanos(self.timeout.load(Relaxed));
        let ignored = if planted!(LargestTimeout) { granted <= known } else { granted >= known };
        if !known.is_zero() && ignored {
            return;
        }
        self.timeout.store(nanos(granted), Relaxed);
        let cut = self.end_after(sent).as_nanos();
        if self.deadline.load(Relaxed) > cut {
            self.deadline.store(cut, Release);
            self.changed.notify_waiters();
        }
    }

    /// Records that a write sent at `sent` was acknowledged, as seen at `now`. When the servers' leader
    /// applied the write, it had last heard from the session at `leader_contact` or later.
    pub(crate) fn renew(&self, sent: Timestamp, leader_contact: Timestamp, now: Timestamp) {
        if self.ended().is_some() {
            return;
        }
        let proof = self.timing().proof(sent, leader_contact);
        if proof.as_nanos() <= self.proof.load(Relaxed) {
            return;
        }
        self.proof.store(proof.as_nanos(), Relaxed);
        let end = self.end_after(proof).as_nanos();
        let old = self.deadline.load(Relaxed);
        if old <= now.as_nanos() {
            // The lease had run out before the reply was seen, whether or not any guard noticed. Its guards
            // stay lost (decision 3), so they must see the lapse no later than the new deadline.
            self.lapses.fetch_add(1, Release);
        }
        if end > old {
            self.deadline.store(end, Release);
        }
        if old <= now.as_nanos() {
            self.changed.notify_waiters();
        }
    }

    /// Records that the session, and with it the lease, has ended permanently. Only the first end counts.
    pub(crate) fn end(&self, end: SessionEnd) {
        // Set before the deadline, so that a reader which sees the end of the lease also sees the reason.
        let _ = self.end.set(end);
        self.lapses.fetch_add(1, Release);
        self.deadline.store(0, Release);
        self.changed.notify_waiters();
    }

    pub(crate) fn ended(&self) -> Option<SessionEnd> {
        self.end.get().copied()
    }

    fn end_after(&self, proof: Timestamp) -> Timestamp {
        self.timing().lease_end(proof)
    }

    pub(crate) fn timing(&self) -> Timing {
        Timing { timeout: self.timeout(), tick: self.tick }
    }

    /// Returns the smallest timeout granted; zero before the first link.
    pub(crate) fn timeout(&self) -> Duration {
        Duration::from_nanos(self.timeout.load(Relaxed))
    }

    /// Returns the part of the timeout that the lease leaves unused.
    pub(crate) fn margin(&self) -> Duration {
        self.timing().margin()
    }

    /// Returns true if the timeout is too short, in ticks of the server, for the lease to be trusted.
    pub(crate) fn is_short(&self) -> bool {
        self.timeout() < self.tick.saturating_mul(4)
    }

    /// Returns true if the margin leaves nothing of the timeout.
    pub(crate) fn is_empty(&self) -> bool {
        self.timeout() <= self.margin()
    }

    pub(crate) fn tick(&self) -> Duration {
        self.tick
    }

    pub(crate) fn deadline(&self) -> Timestamp {
        Timestamp::from_nanos(self.deadline.load(Acquire))
    }

    /// Returns the send time of the newest acknowledged write, or the earlier time that counts instead.
    pub(crate) fn proof(&self) -> Timestamp {
        Timestamp::from_nanos(self.proof.load(Relaxed))
    }

    /// Marks the lease for a guard that begins now. Returns `None` if the lease has run out.
    pub(crate) fn mark(&self, now: Timestamp) -> Option<LeaseMark> {
        let deadline = self.deadline();
        (now < deadline).then(|| LeaseMark(self.lapses.load(Acquire)))
    }

    /// Returns true if the lease has not run out since `mark` was taken.
    pub(crate) fn holds(&self, mark: LeaseMark, now: Timestamp) -> bool {
        // Read the deadline first: a reader that sees a new deadline also sees the lapse before it.
        let deadline = self.deadline();
        now < deadline && LeaseMark(self.lapses.load(Acquire)) == mark
    }

    /// Returns the time at which the lease that was running when `mark` was taken ran out. Returns `None` if
    /// another lease has begun since, or the session has ended.
    pub(crate) fn lapsed_at(&self, mark: LeaseMark) -> Option<Timestamp> {
        // Read the deadline first: if no lapse preceded it, this is the deadline that passed.
        let deadline = self.deadline();
        (LeaseMark(self.lapses.load(Acquire)) == mark).then_some(deadline)
    }

    /// Resolves when a lease begins or is shortened, but not when the lease is renewed in time.
    pub(crate) fn changed(&self) -> tokio::sync::futures::Notified<'_> {
        self.changed.notified()
    }
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn at(seconds: u64) -> Timestamp {
        Timestamp::default() + SECOND * u32::try_from(seconds).unwrap()
    }

    fn lease(timeout: u64) -> Lease {
        let lease = Lease::new(SECOND);
        lease.attached(SECOND * u32::try_from(timeout).unwrap(), at(100));
        lease
    }

    #[test]
    fn an_attached_session_has_no_lease_before_its_first_acknowledged_write() {
        assert_eq!(lease(30).mark(at(100)), None);
    }

    #[test]
    fn the_lease_runs_from_the_send_time_of_the_write() {
        let lease = lease(30);
        lease.renew(at(101), at(101), at(105));
        assert_eq!(lease.deadline(), at(121));
    }

    #[test]
    fn a_write_after_little_leader_contact_renews_less() {
        let lease = lease(30);
        lease.renew(at(115), at(104), at(115));
        assert_eq!(lease.deadline(), at(134) - Duration::from_millis(100));
        assert!(lease.proof() < at(115), "the next heartbeat is due sooner");
        lease.renew(at(115), at(110), at(116));
        assert_eq!(lease.deadline(), at(135));
    }

    #[test]
    fn a_guard_from_before_a_lapse_stays_lost() {
        let lease = lease(30);
        lease.renew(at(101), at(101), at(101));
        let mark = lease.mark(at(102)).unwrap();
        assert!(lease.holds(mark, at(120)));
        assert!(!lease.holds(mark, at(121)));
        lease.renew(at(120), at(120), at(122));
        assert!(!lease.holds(mark, at(123)), "the reply came after the lease had run out");
        assert!(lease.mark(at(123)).is_some(), "new guards may begin");
    }

    #[test]
    fn a_renewal_in_time_keeps_guards() {
        let lease = lease(30);
        lease.renew(at(101), at(101), at(101));
        let mark = lease.mark(at(102)).unwrap();
        lease.renew(at(110), at(110), at(112));
        assert!(lease.holds(mark, at(125)));
    }

    #[test]
    fn a_smaller_timeout_cuts_the_running_lease() {
        let lease = lease(30);
        lease.renew(at(101), at(101), at(101));
        let mark = lease.mark(at(102)).unwrap();
        lease.attached(SECOND * 6, at(103));
        assert_eq!(lease.deadline(), at(103) + SECOND * 4 - Duration::from_millis(100));
        assert!(!lease.holds(mark, at(107)));
        lease.attached(SECOND * 30, at(104));
        assert_eq!(lease.timeout(), SECOND * 6, "the smallest timeout ever granted counts");
    }

    #[test]
    fn an_ended_session_has_no_lease() {
        let lease = lease(30);
        lease.renew(at(101), at(101), at(101));
        let mark = lease.mark(at(102)).unwrap();
        lease.end(SessionEnd::Expired);
        lease.renew(at(103), at(103), at(103));
        assert!(!lease.holds(mark, at(102)));
        assert_eq!(lease.mark(at(102)), None);
    }

    #[test]
    fn an_older_write_acknowledged_later_changes_nothing() {
        let lease = lease(30);
        lease.renew(at(110), at(110), at(110));
        lease.renew(at(105), at(105), at(111));
        assert_eq!(lease.deadline(), at(130));
    }
}
