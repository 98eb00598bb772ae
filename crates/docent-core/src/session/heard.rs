use crate::time::Timestamp;
use std::collections::VecDeque;
use std::time::Duration;

/// Parts of a relay that answers are told apart by. That bounds how many are kept.
const PARTS: u32 = 8;

/// Send time of the newest request that the servers' leader has surely heard of, on one link.
///
/// An answer says that its server has heard of the client since the request was sent. That the server has told its leader is sure
/// a relay after the answer came, if what is sent then gets an answer that only the leader can have caused.
#[derive(Debug, Default)]
pub(super) struct Heard {
    relay: Duration,
    /// What was answered a relay ago.
    settled: Timestamp,
    /// Later answers in the order in which they came. Each is of a newer request than the one before.
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

    /// The session was attached, as was asked for at `sent`: the leader was told before the answer came.
    pub(super) fn attached(&mut self, sent: Timestamp) {
        self.recent.clear();
        self.settled = self.settled.max(sent);
    }

    /// A request that was sent at `sent` was answered, as is seen `now`.
    pub(super) fn answered(&mut self, sent: Timestamp, now: Timestamp) {
        if sent <= self.newest() {
            return;
        }
        let answer = Answer { sent, came: now };
        // Of those that come close together the last counts: they wait a little longer, and say more.
        match self.recent.len().checked_sub(2).map(|last_but_one| self.recent[last_but_one].came) {
            Some(came) if now.since(came) < self.relay / PARTS => {
                self.recent.pop_back();
            }
            _ => {}
        }
        self.recent.push_back(answer);
    }

    /// What the leader will have heard of when it applies what is sent `now`.
    pub(super) fn by(&mut self, now: Timestamp) -> Timestamp {
        while let Some(answer) = self.recent.front().filter(|answer| now >= answer.came + self.relay) {
            self.settled = answer.sent;
            self.recent.pop_front();
        }
        self.settled
    }

    /// The session was attached anew after all that was answered until now, at a time that is not known.
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
