use super::AttemptId;
use std::time::Duration;

/// An attempt to hold something.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Attempt {
    /// Its number.
    pub id: AttemptId,
    /// The path of the thing, as the server knows it.
    pub path: String,
    /// The role that it wants there.
    pub role: Role,
    /// Time that it waits for others: `None` for as long as it takes, zero for not at all.
    pub patience: Option<Duration>,
}

/// Role that an attempt wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Role {
    /// To hold it alone.
    Exclusive,
    /// To hold it together with others that want the same.
    Shared,
    /// One of so many permits that are wanted together.
    Permits(u32),
    /// To come to its turn, which is given up for the things that go together with it.
    Turn,
}

/// Grant of an attempt.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Grant {
    /// The node by which it is held, as the server knows it.
    pub node: String,
    /// The session that the client had.
    pub session: i64,
    /// The client's generation.
    pub generation: u64,
    /// The fencing token, where there is one. Of a turn it is [made](Turn::fence) of the ticket's and its
    /// number.
    pub fence: Option<u64>,
    /// The turn with a ticket that several attempts have one after the other.
    pub turn: Option<Turn>,
}

/// Turn with a ticket that tasks of a client share.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Turn {
    /// Its number, from 0.
    pub number: u32,
    /// The last number that there may be.
    pub last: u32,
}

impl Turn {
    /// Bits of a fence for the number of the turn.
    const BITS: u32 = 16;

    /// The fence of this turn with a ticket that was created by the transaction `czxid`, for runs in which
    /// transactions and turns have small numbers.
    pub fn fence(self, czxid: u64) -> u64 {
        czxid << Self::BITS | u64::from(self.number)
    }
}

/// End of an attempt without a grant.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Ending {
    /// Somebody else held it.
    Busy,
    /// It took too long.
    TimedOut,
    /// The future was dropped.
    Cancelled,
    /// Its turn came and was used: the things that go together with it were granted.
    Passed,
    /// The kind of the error.
    Failed(String),
}

/// Result of asking for another handle of a hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Handle {
    /// There is one more.
    Given,
    /// Refused because the hold is lost.
    Lost,
}

/// A use of a fenced resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Use {
    /// The token shown.
    pub fence: u64,
    /// Whether the resource accepted it.
    pub accepted: bool,
}
