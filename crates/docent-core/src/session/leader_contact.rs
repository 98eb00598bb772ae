use crate::time::Timestamp;
use std::collections::VecDeque;
use std::time::Duration;

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

#[cfg(test)]
mod tests {
    use super::*;

    const RELAY: Duration = Duration::from_secs(2);

    fn at(millis: u64) -> Timestamp {
        Timestamp::default() + Duration::from_millis(millis)
    }

    fn contact(answers: impl IntoIterator<Item = (u64, u64)>) -> LeaderContact {
        let mut contact = LeaderContact::new(RELAY);
        contact.attached(at(10));
        answers.into_iter().for_each(|(sent, received)| contact.answered(at(sent), at(received)));
        contact
    }

    #[test]
    fn an_attached_session_counts_as_contact_immediately() {
        assert_eq!(contact([]).by(at(11)), at(10));
    }

    #[test]
    fn an_answer_counts_one_relay_after_its_arrival() {
        let mut contact = contact([(1_000, 1_500)]);
        assert_eq!(contact.by(at(3_499)), at(10));
        assert_eq!(contact.by(at(3_500)), at(1_000));
    }

    #[test]
    fn an_older_request_answered_later_changes_nothing() {
        let mut contact = contact([(1_000, 1_500), (900, 1_600)]);
        assert_eq!(contact.by(at(3_600)), at(1_000));
    }

    #[test]
    fn of_many_answers_few_are_kept_including_the_last() {
        let mut contact = contact((100..10_000).map(|millis| (millis, millis + 1)));
        assert!(contact.by(at(10_000)) >= at(10_000) - RELAY - RELAY / PARTS);
        assert!(contact.recent.len() <= 2 * PARTS as usize + 2, "{}", contact.recent.len());
        assert_eq!(contact.by(at(12_000)), at(9_999));
    }

    #[test]
    fn a_re_attach_counts_and_supersedes_earlier_answers() {
        let mut contact = contact([(1_000, 1_500)]);
        contact.attached(at(2_000));
        assert_eq!(contact.by(at(2_001)), at(2_000));
        assert_eq!(contact.by(at(9_000)), at(2_000));
    }
}
