use super::Sketch;
use crate::event::{AttemptId, Candidacy, What};
use std::time::Duration;

/// The number of a candidate.
pub(crate) fn candidate(number: u64) -> AttemptId {
    AttemptId(1_000 + number)
}

impl Sketch {
    /// Somebody campaigns for one term.
    pub(crate) fn campaign(&mut self, number: u32) -> AttemptId {
        let attempt = self.begin(number);
        self.stands(number, attempt.0 + 100, attempt, None, 0)
    }

    /// A candidate whose work is bound to its terms stands.
    pub(crate) fn run_at(&mut self, number: u32, candidate: u64) -> AttemptId {
        self.run_with(number, candidate, 0, 0)
    }

    /// As [`run_at`](Self::run_at), with a grace and a takeover delay.
    pub(crate) fn run_with(&mut self, number: u32, candidate: u64, grace: u64, delay: u64) -> AttemptId {
        let attempt = self.begin(number);
        self.stands(number, candidate, attempt, Some(Duration::from_millis(grace)), delay)
    }

    fn stands(
        &mut self,
        number: u32,
        stands: u64,
        attempt: AttemptId,
        bound: Option<Duration>,
        delay: u64,
    ) -> AttemptId {
        let delay = Duration::from_millis(delay);
        self.tell(number, What::Stood(candidate(stands), Candidacy::Stands { attempt, bound, delay }));
        self.markers.insert(attempt, "latch-");
        attempt
    }

    /// A node is written under a term, and named after it.
    pub(crate) fn write_under(&mut self, attempt: AttemptId) -> &mut Self {
        let (session, _) = self.sessions[&self.seats[&attempt].0];
        let path = format!("/written/{attempt}-{:08x}", self.zxid);
        self.make(&path, session, 0)
    }
}
