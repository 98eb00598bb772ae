use crate::time::Timestamp;
use std::collections::VecDeque;
use std::time::Duration;

/// Parts of a relay that answers are told apart by. That bounds how many are kept.
const PARTS: u32 = 8;

/// Send time of the newest request that the servers' leader has surely heard of, on one link (decision 3).
///
/// An answer says that its server has heard of the client since the request was sent. A relay after the
/// answer came it is sure that the server has told its leader, if a request that is sent then gets an answer
/// that only the leader can have caused: both go the same way in order.
#[derive(Debug, Default)]
pub(super) struct Heard {
    relay: Duration,
    /// Send time of the newest request that was answered a relay ago.
    settled: Timestamp,
    /// Later answers in the order in which they came. Each answers a newer request than its predecessor.
    recent: VecDeque<Answer>,
}

#[derive(Debug, Clone, Copy)]
struct Answer {
    sent: Timestamp,
    came: Timestamp,
}

impl Heard {
    pub(super) fn new(relay: Duration) -> Self {
        Self { relay, ..Self::default() }
    }

    /// Takes note that the session, asked for at `sent`, was attached: the leader was told before the answer
    /// came, so this counts at once, without a relay.
    pub(super) fn attached(&mut self, sent: Timestamp) {
        self.recent.clear();
        self.settled = self.settled.max(sent);
    }

    /// Takes note that the request sent at `sent` was answered, as is seen `now`.
    pub(super) fn answered(&mut self, sent: Timestamp, now: Timestamp) {
        if sent <= self.newest() {
            return;
        }
        let answer = Answer { sent, came: now };
        // Of answers that come close together the last is kept. It counts a little later than the first
        // would, never earlier than a relay after it came, so it is as safe.
        match self.recent.len().checked_sub(2).map(|last_but_one| self.recent[last_but_one].came) {
            Some(came) if now.since(came) < self.relay / PARTS => {
                self.recent.pop_back();
            }
            _ => {}
        }
        self.recent.push_back(answer);
    }

    /// Send time of the newest request that the leader will have heard of when it applies a write sent `now`.
    pub(super) fn by(&mut self, now: Timestamp) -> Timestamp {
        // Counted from the time at which the answer came: when the server heard of the request itself is not
        // known, and a request may have been held on its way.
        while let Some(answer) = self.recent.front().filter(|answer| now >= answer.came + self.relay) {
            self.settled = answer.sent;
            self.recent.pop_front();
        }
        self.settled
    }

    /// Takes note that the session was attached anew, at an unknown time after all answers so far.
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

    fn heard(answers: impl IntoIterator<Item = (u64, u64)>) -> Heard {
        let mut heard = Heard::new(RELAY);
        heard.attached(at(10));
        answers.into_iter().for_each(|(sent, came)| heard.answered(at(sent), at(came)));
        heard
    }

    #[test]
    fn an_attached_session_is_heard_of_at_once() {
        assert_eq!(heard([]).by(at(11)), at(10));
    }

    #[test]
    fn an_answer_counts_a_relay_after_it_came() {
        let mut heard = heard([(1_000, 1_500)]);
        assert_eq!(heard.by(at(3_499)), at(10));
        assert_eq!(heard.by(at(3_500)), at(1_000));
    }

    #[test]
    fn an_older_request_answered_later_says_nothing_new() {
        let mut heard = heard([(1_000, 1_500), (900, 1_600)]);
        assert_eq!(heard.by(at(3_600)), at(1_000));
    }

    #[test]
    fn few_answers_are_kept_of_many_and_the_last_is_one_of_them() {
        let mut heard = heard((100..10_000).map(|millis| (millis, millis + 1)));
        assert!(heard.by(at(10_000)) >= at(10_000) - RELAY - RELAY / PARTS);
        assert!(heard.recent.len() <= 2 * PARTS as usize + 2, "{}", heard.recent.len());
        assert_eq!(heard.by(at(12_000)), at(9_999));
    }

    #[test]
    fn what_was_attached_anew_counts_and_nothing_before_it() {
        let mut heard = heard([(1_000, 1_500)]);
        heard.attached(at(2_000));
        assert_eq!(heard.by(at(2_001)), at(2_000));
        assert_eq!(heard.by(at(9_000)), at(2_000));
    }
}
