use super::refusal::Refusal;
use docent_proto::{ConnectRequest, ConnectResponse};

/// Outcome of a link's request for a session.
#[derive(Debug)]
pub(crate) enum Handshake {
    /// The link serves this session.
    Attached(ConnectResponse),
    /// The link gets the reply that the session has expired, and is closed.
    Expired(ConnectResponse),
    /// The link is closed without a reply, because of a limit.
    OverLimit(Refusal),
    /// The link is closed without a reply, for this reason.
    Refused(&'static str),
}

/// Returns the timeout granted to a link.
pub(crate) fn granted(request: &ConnectRequest, (min, max): (i32, i32)) -> i32 {
    request.timeout_ms.clamp(min, max)
}
