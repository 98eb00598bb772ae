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

/// Maximum number of writes that are remembered. More are only made while the servers refuse the node.
const MAX_OWN: usize = 16;

/// What other clients have chosen for a node.
#[derive(Debug, Default)]
pub(super) struct Choice {
    shown: Shown,
    /// Data of this task that the node may show. Such data is no choice of another client, even if it is
    /// out of date.
    own: Vec<Own>,
    /// Time at which some of that data was forgotten.
    forgotten: Option<Instant>,
}

/// Data that the task has written.
#[derive(Debug)]
struct Own {
    data: Bytes,
    /// Number of the session's generation.
    generation: u64,
    /// Time at which a later generation was seen. Until the servers end the session, they may still apply its
    /// last write.
    ended: Option<Instant>,
}

impl Choice {
    pub(super) fn shown(&self) -> Shown {
        self.shown
    }

    /// Records that the task is about to write this data.
    pub(super) fn writes(&mut self, data: &Bytes, generation: u64) {
        if self.own.last().is_some_and(|last| last.generation == generation && last.data == *data) {
            return;
        }
        if self.own.len() == MAX_OWN {
            self.own.remove(0);
            self.forgotten = Some(Instant::now());
        }
        self.own.push(Own { data: data.clone(), generation, ended: None });
    }

    /// Records what a read has found, which followed all writes of this generation. Earlier sessions end
    /// within twice the timeout.
    pub(super) fn found(&mut self, found: Option<&Bytes>, generation: u64, timeout: Duration) {
        let now = Instant::now();
        let is_recent = |at: Instant| now.duration_since(at) < timeout * 2;
        self.own.retain_mut(|own| match own.generation == generation {
            true => Some(&own.data) == found,
            false => is_recent(*own.ended.get_or_insert(now)),
        });
        self.forgotten = self.forgotten.filter(|at| is_recent(*at));
    }

    /// Follows the choice in data that was found. Returns false if the node shows that already, or if the
    /// data is no choice.
    pub(super) fn follow(&mut self, found: &Bytes, wanted: &Bytes, read: ReadChoice) -> bool {
        if self.forgotten.is_some() || self.own.iter().any(|own| own.data == *found) {
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

    #[test]
    fn data_of_other_clients_is_a_choice() {
        let wanted = data("+own");
        let mut choice = Choice::default();
        let mut finds = |found: &'static str| {
            choice.writes(&wanted, 1);
            choice.found(Some(&data(found)), 1, TIMEOUT);
            let is_new = choice.follow(&data(found), &wanted, READ);
            (is_new, choice.shown())
        };
        assert_eq!(finds("+own"), (false, Shown::Data));
        assert_eq!(finds("?"), (false, Shown::Data));
        assert_eq!(finds("-other"), (true, Shown::FinalData));
        assert_eq!(finds("-other"), (false, Shown::FinalData), "the node shows that already");
        assert_eq!(finds("?"), (false, Shown::FinalData));
        assert_eq!(finds("+other"), (true, Shown::Data));
    }

    #[test]
    fn another_client_may_write_what_the_task_wrote_before() {
        let [own, last, other] = ["+own", "-last", "-other"].map(data);
        let mut choice = Choice::default();
        choice.writes(&own, 1);
        choice.found(Some(&other), 1, TIMEOUT);
        assert!(choice.follow(&other, &own, READ));
        choice.writes(&last, 1);
        choice.found(Some(&own), 1, TIMEOUT);
        assert!(choice.follow(&own, &own, READ) && choice.shown() == Shown::Data);
    }

    #[tokio::test(start_paused = true)]
    async fn a_late_write_of_an_earlier_session_is_no_choice() {
        let [off, on] = ["-off", "+on"].map(data);
        let mut choice = Choice::default();
        // The client gives up the session before this write is answered, and writes other data in the next
        // one.
        choice.writes(&off, 1);
        choice.writes(&on, 2);
        choice.found(Some(&on), 2, TIMEOUT);
        tokio::time::advance(TIMEOUT * 19 / 10).await;
        choice.found(Some(&off), 2, TIMEOUT);
        assert!(!choice.follow(&off, &on, READ));
        tokio::time::advance(TIMEOUT).await;
        choice.found(Some(&off), 2, TIMEOUT);
        assert!(choice.follow(&off, &on, READ), "the earlier session has ended");
    }

    #[tokio::test(start_paused = true)]
    async fn nothing_is_a_choice_after_more_writes_than_are_remembered() {
        let mut choice = Choice::default();
        for number in 0..1_000 {
            choice.writes(&Bytes::from(format!("-{number}")), 1);
        }
        assert_eq!(choice.own.len(), MAX_OWN);
        choice.found(Some(&data("-0")), 1, TIMEOUT);
        assert!(!choice.follow(&data("-0"), &data("+"), READ));
        tokio::time::advance(TIMEOUT * 2).await;
        choice.found(Some(&data("-0")), 1, TIMEOUT);
        assert!(choice.own.is_empty() && choice.follow(&data("-0"), &data("+"), READ));
    }
}
