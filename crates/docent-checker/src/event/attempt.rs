use super::AttemptId;
use std::time::Duration;

/// An attempt to hold something.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Attempt {
    /// Number of the attempt.
    pub id: AttemptId,
    /// Path of the lock or other resource, as the server knows it.
    pub path: String,
    /// Role that the attempt requests.
    pub role: Role,
    /// Longest time that the attempt waits for other holders: `None` for no limit, zero for not waiting.
    pub patience: Option<Duration>,
}

/// The role that an attempt requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Role {
    /// An exclusive hold.
    Exclusive,
    /// A hold that is shared with other attempts of this role.
    Shared,
    /// One of this number of permits, which are requested together.
    Permits(u32),
    /// The turn in a line, which is given up when the resources of the same group are granted.
    Turn,
}

/// The grant of an attempt.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Grant {
    /// Node on which the hold is based, as the server knows it.
    pub node: String,
    /// Session of the client at the grant.
    pub session: i64,
    /// Generation of the client.
    pub generation: u64,
    /// The fencing token, if there is one. That of a turn is [computed](Turn::fence) from the ticket's fence
    /// and the number of the turn.
    pub fence: Option<u64>,
    /// The turn, if several attempts use the same ticket one after the other.
    pub turn: Option<Turn>,
}

/// A turn with a ticket that tasks of a client share.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Turn {
    /// Number of the turn, from 0.
    pub number: u32,
    /// Highest number that a turn of this ticket may have.
    pub last: u32,
}

impl Turn {
    /// Number of low bits of a fence that contain the number of the turn.
    const BITS: u32 = 16;

    /// The fence of this turn with a ticket that was created by the transaction `czxid`. Only for runs whose
    /// transactions and turns have small numbers.
    pub fn fence(self, czxid: u64) -> u64 {
        czxid << Self::BITS | u64::from(self.number)
    }
}

/// How an attempt ended without a grant.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Ending {
    /// Another client held the resource.
    Busy,
    /// The attempt timed out.
    TimedOut,
    /// The future was dropped.
    Cancelled,
    /// The turn came and was used: the resources of the same group were granted.
    Passed,
    /// The attempt failed, with the kind of the error.
    Failed(String),
}

/// Result of a request for another handle of a hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Handle {
    /// Another handle was created.
    Given,
    /// The request was refused because the hold is lost.
    Lost,
}

/// One use of a fenced resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Use {
    /// The fencing token that was presented.
    pub fence: u64,
    /// Whether the resource accepted the token.
    pub accepted: bool,
}
