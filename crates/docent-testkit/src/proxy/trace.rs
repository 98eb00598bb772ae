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
    /// Data that is not a frame of the protocol.
    Raw,
}

/// What happened to a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Fate {
    /// The frame was passed on.
    Forwarded,
    /// The frame was not passed on.
    Swallowed,
}

/// A frame that passed a [`Proxy`](super::Proxy). A client's frame is recorded when it arrives, and a
/// server's frame when it is sent on.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Traced {
    /// Time of the record.
    pub at: Instant,
    /// Number of the link, starting at 0.
    pub link: u64,
    /// Direction of the frame.
    pub direction: Direction,
    /// Kind of the frame.
    pub kind: FrameKind,
    /// What happened to the frame.
    pub fate: Fate,
    /// Operation of a request or reply; `None` if the codec does not know it.
    pub op: Option<OpCode>,
    /// Xid of a request, reply or event.
    pub xid: Option<i32>,
    /// The node that the frame concerns; for a reply, the node of its request. For a multi, this is the first
    /// node that is not the marker of an exact write.
    pub path: Option<String>,
    /// Transaction in the header of a reply or event.
    pub zxid: Option<i64>,
    /// Result code of a reply.
    pub code: Option<Code>,
    /// Kind of an event.
    pub event: Option<EventKind>,
    /// Length in bytes, without the length prefix.
    pub length: usize,
}

impl Traced {
    /// Creates a record with this kind and length, and no other information.
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

    /// Returns whether this is a request with operation `op`.
    pub fn is_request(&self, op: OpCode) -> bool {
        self.kind == FrameKind::Request && self.op == Some(op)
    }

    /// Returns whether this is a reply to a request with operation `op`.
    pub fn is_reply(&self, op: OpCode) -> bool {
        self.kind == FrameKind::Reply && self.op == Some(op)
    }
}
