use docent_battery::{Direction, FrameKind, Traced};
use docent_proto::OpCode;
use std::collections::BTreeMap;

/// Bytes of the length that precedes each frame.
const PREFIX: usize = 4;

/// Requests by operation, and bytes of both directions.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Counts {
    /// Requests by the number of the operation, zero for operations that the codec does not know.
    pub(super) requests: BTreeMap<i32, u64>,
    pub(super) bytes: u64,
}

impl Counts {
    /// Counts the frames that went through a proxy.
    pub(super) fn of(trace: &[Traced]) -> Self {
        let mut counts = Self::default();
        for frame in trace {
            counts.bytes += (PREFIX + frame.length) as u64;
            if frame.direction == Direction::ToServer && frame.kind == FrameKind::Request {
                *counts.requests.entry(frame.op.map_or(0, |op| op as i32)).or_default() += 1;
            }
        }
        counts
    }

    /// Number of requests without heartbeats, which depend on time and not on the workload.
    pub(super) fn total(&self) -> u64 {
        self.without_heartbeats().map(|(_, count)| count).sum()
    }

    /// Names of the operations and their counts, without heartbeats.
    pub(super) fn named(&self) -> impl Iterator<Item = (String, u64)> {
        self.without_heartbeats().map(|(op, count)| (name(op), count))
    }

    fn without_heartbeats(&self) -> impl Iterator<Item = (i32, u64)> {
        let heartbeat = OpCode::Ping as i32;
        self.requests.iter().filter(move |(op, _)| **op != heartbeat).map(|(op, count)| (*op, *count))
    }
}

/// Returns the name of an operation, as in `Create2`.
fn name(op: i32) -> String {
    OpCode::from_number(op).map_or_else(|_| "unknown".to_owned(), |op| format!("{op:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(op: OpCode) -> Traced {
        let mut frame = Traced::new(0, Direction::ToServer, FrameKind::Request, 16);
        frame.op = Some(op);
        frame
    }

    #[test]
    fn requests_are_counted_by_operation_and_bytes_of_all_frames() {
        let reply = Traced::new(0, Direction::ToClient, FrameKind::Reply, 96);
        let connect = Traced::new(0, Direction::ToServer, FrameKind::Connect, 40);
        let trace =
            [connect, request(OpCode::Create2), reply, request(OpCode::Delete), request(OpCode::Delete)];
        let counts = Counts::of(&trace);
        assert_eq!(counts.requests, [(2, 2), (15, 1)].into());
        assert_eq!(counts.bytes, 40 + 3 * 16 + 96 + 5 * 4);
    }

    #[test]
    fn heartbeats_are_no_requests_of_an_operation() {
        let counts = Counts::of(&[request(OpCode::Ping), request(OpCode::Exists)]);
        assert_eq!(counts.total(), 1);
        assert_eq!(counts.named().collect::<Vec<_>>(), [("Exists".to_owned(), 1)]);
    }
}
