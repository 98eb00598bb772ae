//! Lease of a session: the time until which it is certain to live (decision 3).
//!
//! Only an acknowledged *write* proves that a quorum knew the session when the write was sent; reads, pings
//! and `sync` are answered by a server that may have lost its leader. So the lease runs from the send time of
//! the last acknowledged write, or from an earlier time when the servers had heard little of the session
//! before it: [`Timing`] has the rule.

use crate::session::SessionEnd;
use crate::session::timing::Timing;
use crate::time::Timestamp;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering::Acquire, Ordering::Relaxed, Ordering::Release};
use std::time::Duration;
use tokio::sync::Notify;

/// The lease of one session. Written by the session's driver alone, read by every guard.
#[derive(Debug)]
pub(crate) struct Lease {
    tick: Duration,
    /// Smallest timeout the server ever granted this session.
    timeout: AtomicU64,
    /// Time that the newest acknowledged write counts as sent at; 0 before the first.
    proof: AtomicU64,
    /// End of the lease; 0 when there is none.
    deadline: AtomicU64,
    /// Number of times that the lease ran out and began again. A guard from before a lapse is lost for ever.
    lapses: AtomicU64,
    end: OnceLock<SessionEnd>,
    /// Notified when the deadline moves to an earlier time or a lease begins.
    changed: Notify,
}

/// Mark of a lease at one moment, by which a guard sees that the lease never ran out since.
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

    /// The session was attached: `granted` is its timeout, asked for at `sent`. A smaller one than before
    /// cuts the running lease to what that request proves, because the server may end the session that much
    /// earlier now.
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

    /// A write sent at `sent` was acknowledged, as is seen `now`. The servers' leader had heard of the
    /// session at `heard` at the earliest when it applied it.
    pub(crate) fn renew(&self, sent: Timestamp, heard: Timestamp, now: Timestamp) {
        if self.ended().is_some() {
            return;
        }
        let proof = self.timing().proof(sent, heard);
        if proof.as_nanos() <= self.proof.load(Relaxed) {
            return;
        }
        self.proof.store(proof.as_nanos(), Relaxed);
        let end = self.end_after(proof).as_nanos();
        let old = self.deadline.load(Relaxed);
        if old <= now.as_nanos() {
            // The lease had run out when the reply was seen, whether or not anybody looked: its guards stay
            // lost (decision 3), so they must see the lapse no later than the new deadline.
            self.lapses.fetch_add(1, Release);
        }
        if end > old {
            self.deadline.store(end, Release);
        }
        if old <= now.as_nanos() {
            self.changed.notify_waiters();
        }
    }

    /// The session has ended: so has its lease, for good. The first end counts.
    pub(crate) fn end(&self, end: SessionEnd) {
        // Before the deadline, so that a reader which sees that the lease is over also sees the reason.
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

    /// Smallest timeout granted, zero before the first link.
    pub(crate) fn timeout(&self) -> Duration {
        Duration::from_nanos(self.timeout.load(Relaxed))
    }

    /// The part of the timeout that the lease leaves unused.
    pub(crate) fn margin(&self) -> Duration {
        self.timing().margin()
    }

    /// True when the timeout is too short, in ticks of the server, for the lease to be trusted.
    pub(crate) fn is_short(&self) -> bool {
        self.timeout() < self.tick.saturating_mul(4)
    }

    /// True when the margin leaves nothing of the timeout.
    pub(crate) fn is_empty(&self) -> bool {
        self.timeout() <= self.margin()
    }

    pub(crate) fn tick(&self) -> Duration {
        self.tick
    }

    pub(crate) fn deadline(&self) -> Timestamp {
        Timestamp::from_nanos(self.deadline.load(Acquire))
    }

    /// Send time of the newest acknowledged write, or an earlier one that it counts as.
    pub(crate) fn proof(&self) -> Timestamp {
        Timestamp::from_nanos(self.proof.load(Relaxed))
    }

    /// Marks the lease for a guard that begins now; `None` when it has run out.
    pub(crate) fn mark(&self, now: Timestamp) -> Option<LeaseMark> {
        let deadline = self.deadline();
        (now < deadline).then(|| LeaseMark(self.lapses.load(Acquire)))
    }

    /// True when the lease has not run out since `mark` was made.
    pub(crate) fn holds(&self, mark: LeaseMark, now: Timestamp) -> bool {
        // The deadline first: a reader that sees a new one also sees the lapse that came before it.
        let deadline = self.deadline();
        now < deadline && LeaseMark(self.lapses.load(Acquire)) == mark
    }

    /// Time at which the lease ran out that was running when `mark` was made. `None` when another began
    /// since, or the session has ended.
    pub(crate) fn lapsed_at(&self, mark: LeaseMark) -> Option<Timestamp> {
        // The deadline first, as above: it is the one that passed if no lapse came before it.
        let deadline = self.deadline();
        (LeaseMark(self.lapses.load(Acquire)) == mark).then_some(deadline)
    }

    /// Resolves when a lease began or was cut; a renewal in time is no news.
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
    fn a_write_before_which_little_was_heard_renews_less() {
        let lease = lease(30);
        lease.renew(at(115), at(104), at(115));
        assert_eq!(lease.deadline(), at(134) - Duration::from_millis(100));
        assert!(lease.proof() < at(115), "the next one is due sooner");
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
