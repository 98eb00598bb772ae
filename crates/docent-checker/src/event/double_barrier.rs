/// An event of a member of a double barrier.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Meeting {
    /// The member starts to enter.
    Arrived {
        /// Path of the barrier.
        path: String,
        /// Number of members that the barrier requires.
        members: u32,
    },
    /// The member entered, with this node.
    Entered(String),
    /// The member starts to leave, and waits for the other members.
    Leaving,
    /// All other members had left, or the call failed.
    Left {
        /// Whether the call returned success.
        ok: bool,
    },
    /// The member gave up entering: the call timed out, failed or was dropped.
    GaveUp,
}
