use docent_proto::OpCode;
use docent_testkit::internals::{Fate, FrameKind, Traced};
use std::collections::HashSet;

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

/// Counts the watch events in a trace that the proxy forwarded.
pub fn watch_events(trace: &[Traced]) -> usize {
    trace.iter().filter(|frame| frame.kind == FrameKind::Event && frame.fate == Fate::Forwarded).count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use docent_testkit::internals::Direction;

    fn frame(kind: FrameKind, op: OpCode, xid: i32) -> Traced {
        let direction = if kind == FrameKind::Request { Direction::ToServer } else { Direction::ToClient };
        let mut frame = Traced::new(0, direction, kind, 0);
        (frame.op, frame.xid) = (Some(op), Some(xid));
        frame
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
    fn pings_are_not_counted_as_round_trips() {
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
