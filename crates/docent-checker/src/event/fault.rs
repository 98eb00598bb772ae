/// Kind of a fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum FaultKind {
    /// Nothing passes between the client and the server.
    Cut,
    /// Frames of the client do not arrive.
    CutToServer,
    /// Frames of the server do not arrive.
    CutToClient,
    /// Frames are held back, and arrive when this ends.
    Held,
    /// Frames take longer.
    Slow,
    /// The process stands still.
    Frozen,
    /// The process died.
    Crashed,
    /// The link was reset at a request: before or after it was applied.
    Reset {
        /// Whether the request was applied.
        applied: bool,
    },
    /// A reply was swallowed, the link stays.
    Swallowed,
    /// A future was dropped at one of its polls.
    Cancelled,
    /// The session was ended from outside.
    Expired,
    /// A server said that the session is over, which lives on: so does a leader that lost its followers.
    Denied,
    /// The node was deleted by somebody else.
    Deleted,
    /// The server went away and came back.
    Bounced,
    /// The server grants smaller timeouts.
    ShortTimeouts,
    /// The follower of some clients lost its leader: it answers reads from what it has, and nothing else.
    CutOff,
}
