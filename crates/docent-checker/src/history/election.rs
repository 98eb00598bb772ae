use super::builder::HistoryBuilder;
use crate::event::{AttemptId, Candidacy, EventKind};
use std::time::Duration;

/// The number of a candidate.
pub(crate) fn candidate(number: u64) -> AttemptId {
    AttemptId(1_000 + number)
}

/// Events of the candidates of the election at [`LOCK`](super::LOCK).
pub(crate) trait ElectionEvents {
    /// A client campaigns for one term.
    fn campaign(&mut self, number: u32) -> AttemptId;

    /// A candidate whose work is bound to its terms joins the line.
    fn run_at(&mut self, number: u32, candidate: u64) -> AttemptId;

    /// Like [`run_at`](Self::run_at), with a grace and a takeover delay.
    fn run_with(&mut self, number: u32, candidate: u64, grace: u64, delay: u64) -> AttemptId;

    /// A node is written under a term, with a name that contains the term's attempt.
    fn write_under(&mut self, attempt: AttemptId) -> &mut Self;
}

impl ElectionEvents for HistoryBuilder {
    fn campaign(&mut self, number: u32) -> AttemptId {
        let attempt = self.begin(number);
        candidacy(self, number, attempt.0 + 100, attempt, None, 0)
    }

    fn run_at(&mut self, number: u32, candidate: u64) -> AttemptId {
        self.run_with(number, candidate, 0, 0)
    }

    fn run_with(&mut self, number: u32, candidate: u64, grace: u64, delay: u64) -> AttemptId {
        let attempt = self.begin(number);
        candidacy(self, number, candidate, attempt, Some(Duration::from_millis(grace)), delay)
    }

    fn write_under(&mut self, attempt: AttemptId) -> &mut Self {
        let session = self.session_of(self.number_of(attempt));
        let path = format!("/written/{attempt}-{:08x}", self.zxid);
        self.create_node(&path, session, 0)
    }
}

fn candidacy(
    history: &mut HistoryBuilder,
    number: u32,
    candidacy: u64,
    attempt: AttemptId,
    bound: Option<Duration>,
    delay: u64,
) -> AttemptId {
    let delay = Duration::from_millis(delay);
    history.record(
        number,
        EventKind::Campaigned(candidate(candidacy), Candidacy::Joins { attempt, bound, delay }),
    );
    history.markers.insert(attempt, "latch-");
    attempt
}
