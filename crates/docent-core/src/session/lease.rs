//! Lease of a session: the time until which the session is certain to live (decision 3).
//!
//! Only an acknowledged *write* proves that a quorum knew the session when the write was sent. Reads, pings
//! and `sync` are answered by a server that may have lost its leader. The lease therefore runs from the send
//! time of the last acknowledged write. It runs from an earlier time if the servers had heard little from the
//! session before that write. [`Timing`] has the inequality on which leases rest, and every interval that
//! follows from it.

use crate::session::SessionEnd;
use crate::time::Timestamp;
use std::collections::VecDeque;
use std::sync::OnceLock;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::time::Duration;
use tokio::sync::Notify;

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

/// Number of parts of a relay that are distinguished. This bounds how many answers are kept.
const PARTS: u32 = 8;

/// Send time of the newest request that the servers' leader certainly knows about, on one link (decision 3).
///
/// An answer shows that its server has been in contact with the client since the request was sent. One relay
/// after the answer arrived, the server has certainly reported this to its leader. This conclusion requires
/// that a request sent at that time gets an answer which only the leader can have caused, because both travel
/// the same way in order.
#[derive(Debug, Default)]
pub(super) struct LeaderContact {
    relay: Duration,
    /// Send time of the newest request that was answered at least one relay ago.
    settled: Timestamp,
    /// Later answers in the order of arrival. Each answers a newer request than its predecessor.
    recent: VecDeque<Answer>,
}

#[derive(Debug, Clone, Copy)]
struct Answer {
    sent: Timestamp,
    received: Timestamp,
}

impl LeaderContact {
    pub(super) fn new(relay: Duration) -> Self {
        Self { relay, ..Self::default() }
    }

    /// Records that the session, requested at `sent`, was attached. The leader knew of the session before the
    /// answer arrived, so this counts immediately, without a relay.
    pub(super) fn attached(&mut self, sent: Timestamp) {
        self.recent.clear();
        self.settled = self.settled.max(sent);
    }

    /// Records that the request sent at `sent` was answered, as seen at `now`.
    pub(super) fn answered(&mut self, sent: Timestamp, now: Timestamp) {
        if sent <= self.newest() {
            return;
        }
        let answer = Answer { sent, received: now };
        // Of answers that arrive close together, only the last is kept. It counts slightly later than the
        // first would, and never earlier than a relay after its arrival, so this is equally safe.
        match self.recent.len().checked_sub(2).map(|last_but_one| self.recent[last_but_one].received) {
            Some(received) if now.since(received) < self.relay / PARTS => {
                self.recent.pop_back();
            }
            _ => {}
        }
        self.recent.push_back(answer);
    }

    /// Returns the send time of the newest request that the leader will know about when it applies a write
    /// sent at `now`.
    pub(super) fn by(&mut self, now: Timestamp) -> Timestamp {
        // Counted from the arrival of the answer, because the time at which the server received the request
        // is unknown: the request may have been delayed on its way.
        while let Some(answer) = self.recent.front().filter(|answer| now >= answer.received + self.relay) {
            self.settled = answer.sent;
            self.recent.pop_front();
        }
        self.settled
    }

    /// Records that the session was re-attached at an unknown time after all answers so far.
    #[cfg(feature = "zookeeper-client")]
    pub(super) fn settle(&mut self) {
        self.settled = self.newest();
        self.recent.clear();
    }

    fn newest(&self) -> Timestamp {
        self.recent.back().map_or(self.settled, |answer| answer.sent)
    }
}

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
mod timing_tests;

#[cfg(test)]
mod tests {
    use super::*;

    const RELAY: Duration = Duration::from_secs(2);

    fn at_ms(millis: u64) -> Timestamp {
        Timestamp::default() + Duration::from_millis(millis)
    }

    fn contact(answers: impl IntoIterator<Item = (u64, u64)>) -> LeaderContact {
        let mut contact = LeaderContact::new(RELAY);
        contact.attached(at_ms(10));
        answers.into_iter().for_each(|(sent, received)| contact.answered(at_ms(sent), at_ms(received)));
        contact
    }

    #[test]
    fn an_attached_session_counts_as_contact_immediately() {
        assert_eq!(contact([]).by(at_ms(11)), at_ms(10));
    }

    #[test]
    fn an_answer_counts_one_relay_after_its_arrival() {
        let mut contact = contact([(1_000, 1_500)]);
        assert_eq!(contact.by(at_ms(3_499)), at_ms(10));
        assert_eq!(contact.by(at_ms(3_500)), at_ms(1_000));
    }

    #[test]
    fn an_older_request_answered_later_changes_nothing() {
        let mut contact = contact([(1_000, 1_500), (900, 1_600)]);
        assert_eq!(contact.by(at_ms(3_600)), at_ms(1_000));
    }

    #[test]
    fn of_many_answers_few_are_kept_including_the_last() {
        let mut contact = contact((100..10_000).map(|millis| (millis, millis + 1)));
        assert!(contact.by(at_ms(10_000)) >= at_ms(10_000) - RELAY - RELAY / PARTS);
        assert!(contact.recent.len() <= 2 * PARTS as usize + 2, "{}", contact.recent.len());
        assert_eq!(contact.by(at_ms(12_000)), at_ms(9_999));
    }

    #[test]
    fn a_re_attach_counts_and_supersedes_earlier_answers() {
        let mut contact = contact([(1_000, 1_500)]);
        contact.attached(at_ms(2_000));
        assert_eq!(contact.by(at_ms(2_001)), at_ms(2_000));
        assert_eq!(contact.by(at_ms(9_000)), at_ms(2_000));
    }

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
