use docent_proto::{Code, EventKind, OpCode};
use std::collections::HashSet;
use std::time::Instant;

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
    pub(super) fn new(link: u64, direction: Direction, kind: FrameKind, length: usize) -> Self {
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

/// Counts the round trips in a trace: the requests that were sent while no other request of their link was
/// awaiting its reply. Requests sent together count once. Connects and pings do not count.
pub fn round_trips(trace: &[Traced]) -> usize {
    let mut awaiting: HashSet<(u64, Option<i32>)> = HashSet::new();
    let mut count = 0;
    for frame in trace.iter().filter(|frame| frame.op != Some(OpCode::Ping)) {
        match frame.kind {
            FrameKind::Request => {
                if !awaiting.iter().any(|(link, _)| *link == frame.link) {
                    count += 1;
                }
                awaiting.insert((frame.link, frame.xid));
            }
            FrameKind::Reply if frame.fate == Fate::Forwarded => {
                awaiting.remove(&(frame.link, frame.xid));
            }
            FrameKind::Reply | FrameKind::Connect | FrameKind::Event | FrameKind::Raw => {}
        }
    }
    count
}

/// Counts the watch events in a trace that were passed on.
pub fn watch_events(trace: &[Traced]) -> usize {
    trace.iter().filter(|frame| frame.kind == FrameKind::Event && frame.fate == Fate::Forwarded).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(kind: FrameKind, op: OpCode, xid: i32) -> Traced {
        let direction = if kind == FrameKind::Request { Direction::ToServer } else { Direction::ToClient };
        Traced { op: Some(op), xid: Some(xid), ..Traced::new(0, direction, kind, 0) }
    }

    #[test]
    fn requests_that_overlap_are_one_round_trip() {
        use FrameKind::{Reply, Request};
        let mut trace = vec![
            frame(Request, OpCode::Create2, 1),
            frame(Request, OpCode::GetChildren2, 2),
            frame(Reply, OpCode::Create2, 1),
            frame(Request, OpCode::GetData, 3),
            frame(Reply, OpCode::GetChildren2, 2),
            frame(Reply, OpCode::GetData, 3),
        ];
        assert_eq!(round_trips(&trace), 1);
        trace.push(frame(Request, OpCode::Delete, 4));
        assert_eq!(round_trips(&trace), 2);
    }

    #[test]
    fn pings_are_no_round_trips_and_do_not_join_others() {
        use FrameKind::{Reply, Request};
        let trace = [
            frame(Request, OpCode::Ping, -2),
            frame(Request, OpCode::GetData, 1),
            frame(Reply, OpCode::GetData, 1),
            frame(Request, OpCode::GetData, 2),
            frame(Reply, OpCode::Ping, -2),
        ];
        assert_eq!(round_trips(&trace), 2);
    }

    #[test]
    fn links_are_counted_apart() {
        let mut other = frame(FrameKind::Request, OpCode::GetData, 1);
        other.link = 1;
        assert_eq!(round_trips(&[frame(FrameKind::Request, OpCode::GetData, 1), other]), 2);
    }
}
