/// Deed of a member of a double barrier.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Meeting {
    /// It wants to be let in.
    Came {
        /// The barrier.
        path: String,
        /// Number of members that have to come.
        members: u32,
    },
    /// It was let in, by this node.
    Entered(String),
    /// It wants to leave, and waits for the others.
    Leaving,
    /// All others had left, or it failed.
    Left {
        /// Whether it returned success.
        ok: bool,
    },
    /// It gave up: it timed out, failed or was dropped.
    GaveUp,
}
