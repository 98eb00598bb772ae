/// An event of a call that changes a published value.
///
/// Values are numbers. Each number is published only once, and again only by rollbacks.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Publishing {
    /// A call began.
    Began {
        /// Path of the node, as the server knows it.
        path: String,
        /// The change that the call requests.
        way: Way,
    },
    /// The call returned. Nothing is known about a call that never returns.
    Done(Outcome),
}

/// The change that a call makes to a published value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Way {
    /// Replaces the value, whatever it is, with this number.
    Replace(u64),
    /// Replaces the value if it is still the one that was seen.
    ReplaceSeen {
        /// The new number.
        number: u64,
        /// The transaction that wrote the value that was seen; `None` if no value existed.
        seen: Option<i64>,
    },
    /// Publishes this earlier number again.
    Republish(u64),
    /// Deletes the value.
    Delete,
    /// Adds one to the value.
    Count,
}

/// Outcome of a call, as it was reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Outcome {
    /// The call was applied, by this transaction if it was reported.
    Applied(Option<i64>),
    /// The call was definitely not applied.
    Nothing,
    /// The call may have been applied.
    Unknown,
}

/// An event of a follower of a value.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Following {
    /// The follower starts to follow the value at this path, as the server knows it.
    Begins(String),
    /// The follower was shown this number, written by this transaction.
    Saw {
        /// The number.
        number: u64,
        /// The transaction.
        zxid: i64,
    },
    /// The follower was notified that the value no longer exists.
    Missing,
    /// The follower was notified that the value cannot be read.
    Refused,
    /// The follower stopped.
    Stopped,
}
