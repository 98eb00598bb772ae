use super::AttemptId;
use std::time::Duration;

/// Deed of a candidate of an election.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Candidacy {
    /// It stands, by this attempt.
    Stands {
        /// The attempt, whose grant is a term.
        attempt: AttemptId,
        /// Time that its work may go on after the end of its lease, if work is bound to its terms.
        bound: Option<Duration>,
        /// Time that it waits when its predecessor did not resign.
        delay: Duration,
    },
    /// It is about to be stopped or dropped: nobody has to wonder that its work ends.
    Stopping,
}

/// Deed of an onlooker at an election.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Onlooking {
    /// It asks for the leader at this path, once.
    Asks(String),
    /// It waits for news of the leader at this path.
    Waits(String),
    /// It was shown the leader, by its fence, or that nobody stands.
    Shown(Option<u64>),
    /// It does not look on any more, or its question failed.
    Left,
}
