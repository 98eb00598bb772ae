//! Replies above the limit: each fails its request, and is discarded as it arrives.

use super::{Link, Machine};
use crate::session::requests::WatchRequest;
use crate::session::{Cause, LinkError, Outcome};
use crate::time::Timestamp;
use bytes::{Buf, Bytes, BytesMut};
use docent_proto::{DecodeError, Record, ReplyHeader};

/// Upper bound of any reply in bytes. A longer frame does not come from a ZooKeeper server: the first byte of
/// its length is a letter if the peer sends text.
const LONGEST: usize = 1 << 30;

/// Bytes of a frame's length field, and of the header that follows it.
const LENGTH: usize = 4;
const HEADER: usize = 16;

impl Machine {
    /// Discards the rest of a reply that is too large. Returns true if more of it is to come.
    pub(super) fn skip(&mut self, now: Timestamp, input: &mut BytesMut) -> bool {
        let skipped = self.to_skip.min(input.len());
        if skipped > 0 {
            input.advance(skipped);
            self.to_skip -= skipped;
            self.last_received = now;
        }
        self.to_skip > 0
    }

    /// Fails the request whose reply has begun and is too large. Returns false if more bytes must arrive
    /// first.
    ///
    /// # Errors
    /// `error`, if it is another error or if the frame is not the reply that is due, because then the request
    /// of the reply is unknown.
    pub(super) fn discard_reply(
        &mut self,
        now: Timestamp,
        error: DecodeError,
        input: &mut BytesMut,
    ) -> Result<bool, LinkError> {
        let (size, limit) = match error {
            DecodeError::FrameLength { length, limit } => match usize::try_from(length) {
                Ok(size) if size <= LONGEST && size > HEADER && self.link == Link::Attached => (size, limit),
                _ => return Err(error.into()),
            },
            _ => return Err(error.into()),
        };
        let Some(header) = input.get(LENGTH..LENGTH + HEADER) else { return Ok(false) };
        let header = ReplyHeader::decode(Bytes::copy_from_slice(header))?;
        let due = self.requests.in_flight.front();
        if due.is_none_or(|due| due.xid != header.xid || due.done.is_none() && due.id == 0) {
            return Err(error.into());
        }
        let Some(in_flight) = self.requests.answered() else { return Ok(false) };
        self.ephemerals.unanswered(&in_flight.ephemerals);
        if let Some(WatchRequest::Data(paths)) = &in_flight.watch {
            self.unsubscribe(paths, &in_flight.subscribers);
        }
        self.last_zxid = self.last_zxid.max(header.zxid);
        self.answered(in_flight.sent_at, now);
        if let Some(done) = in_flight.done {
            self.deliveries.finished.push((done, Outcome::Unknown(Cause::TooLarge { size, limit })));
        }
        input.advance(LENGTH);
        self.to_skip = size;
        Ok(true)
    }
}
