use super::AttemptId;
use std::time::Duration;

/// What a candidate of an election did.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Candidacy {
    /// It stands, by this attempt.
    Stands {
        /// The attempt. What it is granted is a term.
        attempt: AttemptId,
        /// How long its work may go on after the end of its lease, if work is bound to its terms.
        bound: Option<Duration>,
        /// How long it waits when the leader before it did not resign.
        delay: Duration,
    },
    /// It is about to be stopped or dropped: nobody has to wonder that its work ends.
    Stopping,
}

/// What somebody did who looks on at an election.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Onlooking {
    /// It asks who leads at this path, once.
    Asks(String),
    /// It waits for news of who leads at this path.
    Waits(String),
    /// It was shown who leads, by the fence, or that nobody stands.
    Shown(Option<u64>),
    /// It does not look on any more, or its question failed.
    Left,
}
