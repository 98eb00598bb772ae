use bytes::{Buf, BytesMut};

/// Bytes of a request's number and operation.
const HEAD: usize = 8;

/// Reader of the operations in one client's stream of frames, whatever pieces it comes in.
#[derive(Debug, Default)]
pub(super) struct Tally {
    /// Bytes that are not understood yet.
    begun: BytesMut,
    /// Bytes of a frame that do not matter any more.
    to_skip: usize,
    /// The first frame opens the session and is no request.
    is_open: bool,
}

impl Tally {
    /// Operations of the requests whose heads are complete with these bytes.
    pub(super) fn read(&mut self, bytes: &[u8]) -> Vec<i32> {
        self.begun.extend_from_slice(bytes);
        let mut requests = Vec::new();
        loop {
            let skipped = self.to_skip.min(self.begun.len());
            self.begun.advance(skipped);
            self.to_skip -= skipped;
            if self.to_skip > 0 || self.begun.len() < 4 + HEAD {
                return requests;
            }
            let length = self.begun.get_u32() as usize;
            self.to_skip = length;
            let op = i32::from_be_bytes([self.begun[4], self.begun[5], self.begun[6], self.begun[7]]);
            if std::mem::replace(&mut self.is_open, true) {
                requests.push(op);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Frame of a request, with so many bytes of its own.
    fn frame(op: i32, body: usize) -> Vec<u8> {
        let length = u32::try_from(HEAD + body).unwrap().to_be_bytes();
        [&length[..], &7_i32.to_be_bytes(), &op.to_be_bytes(), &vec![0xff; body]].concat()
    }

    #[test]
    fn requests_are_counted_in_whatever_pieces_they_come() {
        let stream = [frame(0, 36), frame(15, 80), frame(12, 20), frame(2, 0), frame(11, 0)].concat();
        for piece in [1, 3, 7, 64, stream.len()] {
            let mut tally = Tally::default();
            let read: Vec<i32> = stream.chunks(piece).flat_map(|bytes| tally.read(bytes)).collect();
            assert_eq!(read, [15, 12, 2, 11], "in pieces of {piece}");
        }
    }

    #[test]
    fn the_frame_that_opens_the_session_is_no_request() {
        assert!(Tally::default().read(&frame(0, 36)).is_empty());
    }
}
