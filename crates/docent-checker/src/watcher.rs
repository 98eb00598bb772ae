use docent_proto::{Code, Request, Response, WatchEvent};
use std::time::Duration;

/// Record of one link of a client that watches by bare requests, one at a time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WatcherLink {
    /// The client's session.
    pub session: i64,
    /// Node below which nobody else sets watches.
    pub folder: String,
    /// Replies and events in the order in which they came, each with the time since the run began.
    pub heard: Vec<(Duration, Heard)>,
}

/// Something that a [`WatcherLink`] brought.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(clippy::large_enum_variant, reason = "replies are most of what is heard")]
pub enum Heard {
    /// A reply.
    Reply {
        /// The request that it answers.
        request: Request,
        /// The transaction of its header.
        zxid: i64,
        /// Answer of the server, or the code of its refusal.
        result: Result<Response, Code>,
    },
    /// An event of a watch.
    Event {
        /// The event itself.
        event: WatchEvent,
        /// The transaction of its header; −1 where servers do not say it.
        zxid: i64,
    },
}
