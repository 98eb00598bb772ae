/// Kind of a fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum FaultKind {
    /// No frame passes between the client and the server.
    Cut,
    /// Frames from the client do not arrive.
    CutToServer,
    /// Frames from the server do not arrive.
    CutToClient,
    /// Frames are held back, and arrive when the fault ends.
    Held,
    /// Frames are delayed.
    Slow,
    /// The process is paused.
    Frozen,
    /// The process died.
    Crashed,
    /// The link was reset at a request, before or after the request was applied.
    Reset {
        /// Whether the request was applied.
        applied: bool,
    },
    /// A reply was lost, and the link stays up.
    Swallowed,
    /// A future was dropped at one of its polls.
    Cancelled,
    /// A third party ended the session.
    Expired,
    /// A server reported that the session is over, although the session lives. A leader that lost its
    /// followers does this.
    Denied,
    /// A third party deleted the node.
    Deleted,
    /// The server stopped and returned.
    Bounced,
    /// The server grants smaller timeouts.
    ShortTimeouts,
    /// The follower of some clients lost its leader: the follower answers reads from its own state, and no
    /// other requests.
    CutOff,
}
