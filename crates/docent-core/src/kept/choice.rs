use bytes::Bytes;
use std::time::Duration;
use tokio::time::Instant;

/// Data that a kept node shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Shown {
    /// The wanted data.
    #[default]
    Data,
    /// The final data, although the node is not about to be removed.
    FinalData,
}

/// Reads data that another client wrote into a kept node; the second argument is the wanted data of the
/// handle. Returns what the other client wants the node to show, or `None` if the wanted data must be
/// restored.
pub type ReadChoice = fn(found: &[u8], wanted: &[u8]) -> Option<Shown>;

/// Maximum number of writes of unknown outcome that are remembered.
const MAX_UNKNOWN: usize = 16;

/// What other clients have chosen for a node.
#[derive(Debug, Default)]
pub(super) struct Choice {
    shown: Shown,
    /// Transaction of the last write of this task.
    own: i64,
    /// Data of writes whose session ended before their outcome was known.
    unknown: Vec<Unknown>,
}

/// A write that the servers may still apply until they end its session.
#[derive(Debug)]
struct Unknown {
    data: Bytes,
    /// Number of the session's generation.
    generation: u64,
    /// Time of the first read in a later generation. In an outage, the servers end no session. After that
    /// read, they end the session within twice its timeout.
    since: Option<Instant>,
}

impl Choice {
    pub(super) fn shown(&self) -> Shown {
        self.shown
    }

    /// Records the transaction of a write of this task.
    pub(super) fn wrote(&mut self, zxid: i64) {
        self.own = zxid;
    }

    /// Records a write of this task whose outcome is unknown.
    pub(super) fn may_have_written(&mut self, data: &Bytes, generation: u64) {
        self.unknown.retain(|unknown| unknown.data != *data);
        if self.unknown.len() == MAX_UNKNOWN {
            self.unknown.remove(0);
        }
        self.unknown.push(Unknown { data: data.clone(), generation, since: None });
    }

    /// Follows the choice in data that was found, and that the transaction `mzxid` wrote. Returns false if
    /// the node shows that already, or if the data is no choice. `generation` is the number of the present
    /// session's generation and its timeout.
    pub(super) fn follow(
        &mut self,
        (found, mzxid): (&Bytes, i64),
        wanted: &Bytes,
        (generation, timeout): (u64, Duration),
        read: ReadChoice,
    ) -> bool {
        self.unknown.retain_mut(|unknown| {
            unknown.generation == generation
                || unknown.since.get_or_insert_with(Instant::now).elapsed() < timeout * 2
        });
        // With so many, some may have been forgotten.
        let is_uncertain = self.unknown.len() == MAX_UNKNOWN;
        if mzxid == self.own || is_uncertain || self.unknown.iter().any(|it| it.data == *found) {
            return false;
        }
        match read(found, wanted).filter(|shown| *shown != self.shown) {
            Some(shown) => {
                self.shown = shown;
                true
            }
            None => false,
        }
    }

    /// Forgets the choice, for another handle of the same node.
    pub(super) fn reset(&mut self) {
        self.shown = Shown::Data;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIMEOUT: Duration = Duration::from_secs(10);

    const READ: ReadChoice = |found, _| match found {
        [b'-', ..] => Some(Shown::FinalData),
        [b'+', ..] => Some(Shown::Data),
        _ => None,
    };

    fn data(text: &'static str) -> Bytes {
        Bytes::from(text)
    }

    #[tokio::test(start_paused = true)]
    async fn data_of_other_clients_is_a_choice() {
        let wanted = data("+own");
        let mut choice = Choice::default();
        choice.wrote(1);
        let mut finds = |found: &'static str, mzxid| {
            let is_new = choice.follow((&data(found), mzxid), &wanted, (1, TIMEOUT), READ);
            (is_new, choice.shown())
        };
        assert_eq!(finds("-own", 1), (false, Shown::Data), "the task's own write");
        assert_eq!(finds("?", 2), (false, Shown::Data));
        assert_eq!(finds("-other", 3), (true, Shown::FinalData));
        assert_eq!(finds("-other", 4), (false, Shown::FinalData), "the node shows that already");
        assert_eq!(finds("?", 5), (false, Shown::FinalData));
        assert_eq!(finds("+own", 6), (true, Shown::Data), "another client wrote what the task wrote before");
    }

    #[tokio::test(start_paused = true)]
    async fn a_late_write_of_an_earlier_session_is_no_choice() {
        let [off, on] = ["-off", "+on"].map(data);
        let mut choice = Choice::default();
        // The client gives up the session before this write is answered, and writes other data in the next
        // one.
        choice.may_have_written(&off, 1);
        choice.wrote(7);
        // In an outage, the servers end no session.
        tokio::time::advance(TIMEOUT * 10).await;
        assert!(!choice.follow((&off, 8), &on, (2, TIMEOUT), READ));
        tokio::time::advance(TIMEOUT * 19 / 10).await;
        assert!(!choice.follow((&off, 8), &on, (2, TIMEOUT), READ));
        tokio::time::advance(TIMEOUT).await;
        assert!(choice.follow((&off, 8), &on, (2, TIMEOUT), READ), "the earlier session has ended");
    }

    #[tokio::test(start_paused = true)]
    async fn nothing_is_a_choice_after_more_writes_than_are_remembered() {
        let mut choice = Choice::default();
        for number in 0..1_000 {
            choice.may_have_written(&Bytes::from(format!("-{number}")), 1);
        }
        assert_eq!(choice.unknown.len(), MAX_UNKNOWN);
        let mut follows = || choice.follow((&data("-0"), 1), &data("+"), (2, TIMEOUT), READ);
        assert!(!follows());
        tokio::time::advance(TIMEOUT * 2).await;
        assert!(follows() && choice.unknown.is_empty());
    }
}
