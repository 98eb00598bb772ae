use super::AttemptId;
use std::time::Duration;

/// An event of a candidate of an election.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Candidacy {
    /// The candidate joins the line, with this attempt.
    Joins {
        /// The attempt, whose grant is a term.
        attempt: AttemptId,
        /// Time for which work may continue after the end of its lease, if work is bound to the term.
        bound: Option<Duration>,
        /// Takeover delay: the time that the candidate waits if its predecessor did not resign.
        delay: Duration,
    },
    /// The candidate is about to be stopped or dropped, which explains why its work ends.
    Stopping,
}

/// An event of an observer of an election.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Observing {
    /// The observer asks for the leader at this path, once.
    Reads(String),
    /// The observer waits for changes of the leader at this path.
    Follows(String),
    /// The observer was shown the leader, by its fence; `None` if there is no candidate.
    Shown(Option<u64>),
    /// The observer stopped, or its request failed.
    Stopped,
}
