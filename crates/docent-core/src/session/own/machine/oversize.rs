//! Replies above the limit: each is an error of its request, and is thrown away as it comes.

use super::{Link, Machine};
use crate::session::requests::WatchRequest;
use crate::session::{Cause, LinkError, Outcome};
use crate::time::Timestamp;
use bytes::{Buf, Bytes, BytesMut};
use docent_proto::{DecodeError, Record, ReplyHeader};

/// No reply is longer. As text the length of such a frame begins with a letter: it comes from something else
/// than a server.
const LONGEST: usize = 1 << 30;

/// Bytes of a frame's length, and of the header behind it.
const LENGTH: usize = 4;
const HEADER: usize = 16;

impl Machine {
    /// Throws away the rest of a reply that is too large. True when there is more to come.
    pub(super) fn skip(&mut self, now: Timestamp, input: &mut BytesMut) -> bool {
        let skipped = self.to_skip.min(input.len());
        if skipped > 0 {
            input.advance(skipped);
            self.to_skip -= skipped;
            self.last_received = now;
        }
        self.to_skip > 0
    }

    /// Gives up the request whose reply has begun and is too large. False when more has to come before that.
    ///
    /// # Errors
    /// When `error` is another one, or the frame is not the reply that is due: it could not be told whose it
    /// is.
    pub(super) fn give_up_reply(
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
