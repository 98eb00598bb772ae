/// The state of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LinkState {
    /// There is no session yet.
    Connecting,
    /// Connected, with a live session.
    Connected,
    /// The link is down; the session may still be alive.
    Suspended,
    /// The session has ended.
    Lost,
    /// Connected to a server that only serves reads.
    ReadOnly,
    /// The client is closed.
    Closed,
}
