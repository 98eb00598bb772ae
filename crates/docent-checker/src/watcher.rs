use docent_proto::{Code, Request, Response, WatchEvent};
use std::time::Duration;

/// Record of one link of a client that watches with bare requests, one at a time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WatcherLink {
    /// The client's session.
    pub session: i64,
    /// Node below which no other client sets watches.
    pub folder: String,
    /// Replies and events in the order of arrival, each with the time since the run began.
    pub received: Vec<(Duration, Received)>,
}

/// Something that arrived on a [`WatcherLink`].
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(clippy::large_enum_variant, reason = "replies are most of what is heard")]
pub enum Received {
    /// A reply.
    Reply {
        /// The request that was answered.
        request: Request,
        /// The zxid of the reply's header.
        zxid: i64,
        /// The server's response, or the code of its error.
        result: Result<Response, Code>,
    },
    /// A watch event.
    Event {
        /// The event.
        event: WatchEvent,
        /// The zxid of the event's header; −1 if the server does not send it.
        zxid: i64,
    },
}
