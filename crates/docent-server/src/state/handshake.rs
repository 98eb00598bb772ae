use super::refusal::Refusal;
use docent_proto::{ConnectRequest, ConnectResponse};

/// Outcome for a link that asked for a session.
#[derive(Debug)]
pub(crate) enum Handshake {
    /// It serves this session.
    Attached(ConnectResponse),
    /// It is told that the session is gone, then closed.
    Gone(ConnectResponse),
    /// It is closed without a word, because of a limit.
    Over(Refusal),
    /// It is closed without a word.
    Refused(&'static str),
}

/// The timeout that a link is granted.
pub(crate) fn granted(request: &ConnectRequest, (min, max): (i32, i32)) -> i32 {
    request.timeout_ms.clamp(min, max)
}
