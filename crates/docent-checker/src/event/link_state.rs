/// The state of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LinkState {
    /// No session yet.
    Connecting,
    /// All is well.
    Connected,
    /// The link is down, the session may live.
    Suspended,
    /// The session is over.
    Lost,
    /// Connected to a server that only reads.
    ReadOnly,
    /// The client is closed.
    Closed,
}
