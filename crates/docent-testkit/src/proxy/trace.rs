use docent_proto::{Code, EventKind, OpCode};
use tokio::time::Instant;

/// Direction of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Direction {
    /// From the client to the server.
    ToServer,
    /// From the server to the client.
    ToClient,
}

/// Kind of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FrameKind {
    /// The first frame of either side.
    Connect,
    /// A request.
    Request,
    /// The reply to a request.
    Reply,
    /// A watch event.
    Event,
    /// Something that is not a frame of the protocol.
    Raw,
}

/// Fate of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Fate {
    /// It was passed on.
    Forwarded,
    /// It was not passed on.
    Swallowed,
}

/// A frame that a [`Proxy`](super::Proxy) saw: towards the server when it came in, towards the client when it
/// went out.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Traced {
    /// Time at which it was seen.
    pub at: Instant,
    /// Number of its link, counted from 0.
    pub link: u64,
    /// Its direction.
    pub direction: Direction,
    /// Its kind.
    pub kind: FrameKind,
    /// Its fate.
    pub fate: Fate,
    /// Operation of a request or reply; `None` when the codec does not know it.
    pub op: Option<OpCode>,
    /// Number of a request, reply or event.
    pub xid: Option<i32>,
    /// The node that a request, the request of a reply or an event is about; of a multi the first that is no
    /// marker of an exact write.
    pub path: Option<String>,
    /// Transaction in the header of a reply or event.
    pub zxid: Option<i64>,
    /// Result of a reply.
    pub code: Option<Code>,
    /// Kind of an event.
    pub event: Option<EventKind>,
    /// Length in bytes, without the length prefix.
    pub length: usize,
}

impl Traced {
    /// A frame of this kind and length, about which nothing else is known.
    pub fn new(link: u64, direction: Direction, kind: FrameKind, length: usize) -> Self {
        Self {
            at: Instant::now(),
            link,
            direction,
            kind,
            fate: Fate::Forwarded,
            op: None,
            xid: None,
            path: None,
            zxid: None,
            code: None,
            event: None,
            length,
        }
    }

    /// True for a request that is `op`.
    pub fn is_request(&self, op: OpCode) -> bool {
        self.kind == FrameKind::Request && self.op == Some(op)
    }

    /// True for a reply to an `op`.
    pub fn is_reply(&self, op: OpCode) -> bool {
        self.kind == FrameKind::Reply && self.op == Some(op)
    }
}
