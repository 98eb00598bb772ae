/// Deed of a publisher of values. Each value is a number, which is published once, and then only by
/// rollbacks.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Publishing {
    /// A call began.
    Began {
        /// The node, as the server knows it.
        path: String,
        /// The change it makes.
        way: Way,
    },
    /// It returned. Nothing is known of one that never does.
    Done(Outcome),
}

/// Change that a call makes to a published value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Way {
    /// It is replaced by this number, whatever it is.
    Replace(u64),
    /// It is replaced by this number if it is the one that was seen.
    Over {
        /// The new value.
        number: u64,
        /// The transaction that wrote the one that was seen; `None` when nothing was there.
        seen: Option<i64>,
    },
    /// This number, which was replaced, is published again.
    Again(u64),
    /// It is deleted.
    Delete,
    /// One is added to it.
    Count,
}

/// Outcome of a call, as it said.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Outcome {
    /// It was applied, by this transaction where that is told.
    Applied(Option<i64>),
    /// It was surely not applied.
    Nothing,
    /// It may have been applied.
    Unknown,
}

/// Deed of a follower of a value.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Following {
    /// It follows the value at this path, as the server knows it.
    Begins(String),
    /// It was shown this number, written by this transaction.
    Saw {
        /// The value.
        number: u64,
        /// The transaction.
        zxid: i64,
    },
    /// It was told that nothing is there any more.
    Missing,
    /// It was told that the value cannot be read.
    Refused,
    /// It does not follow any more.
    Over,
}
