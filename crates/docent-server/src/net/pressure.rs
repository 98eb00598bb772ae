//! Requests that wait for their own client to read, or for room in the memory that all links share.

use super::buffers::Outgoing;
use super::ensemble::Ensemble;
use super::links::SMALL;
use crate::state::Staleness;
use bytes::{Buf, Bytes};
use docent_proto::{OpCode, Reader, Request};

/// Bytes queued in a link beyond which only small requests are answered.
const FULL: usize = 256 << 10;

/// Time after which the link of a client that reads nothing may be closed in favour of other links, in
/// milliseconds.
const STALLED_MS: i64 = 60_000;

impl Ensemble {
    /// Records what the link's task has written and received. While the server does not answer a link,
    /// received bytes are the only sign that its session is alive.
    pub(super) fn take_note(&mut self, id: u64, coming: usize, output: &Outgoing) {
        let now = self.clock.now_ms();
        let Some(link) = self.links.get_mut(id) else { return };
        link.wrote(output, now);
        if link.coming(coming) && link.is_full {
            self.note_contact_of(id, now);
        }
        self.links.settle(id);
    }

    /// Returns whether the next request of a link may be answered now. Otherwise its client must read first,
    /// or the link waits for room for the reply.
    pub(super) fn has_room(&mut self, id: u64, session: i64, request: &Bytes, now: i64) -> bool {
        let Some(link) = self.links.get(id).filter(|_| !planted!(ReadersExpelled)) else { return true };
        let longest = self.limits.longest_reply();
        let (queued, unsent) = (link.queued(), link.output.len());
        if queued < self.full() && self.links.replies.has(longest) {
            return true;
        }
        let bytes = self.longest_answer(id, session, request, now).min(longest);
        if unsent + bytes <= SMALL {
            self.links.leave_line(id);
            return true;
        }
        // The client's own queued output is written first, so that each link has at most one large reply
        // while other links wait.
        if queued > SMALL {
            self.links.leave_line(id);
            return false;
        }
        let has_room = self.links.replies.reserve(id, bytes);
        if !has_room {
            self.note_contact_of(id, now);
        }
        has_room
    }

    /// Returns whether a link may read a request of `bytes` bytes now. Otherwise the link waits for room.
    pub(super) fn has_room_for_request(&mut self, id: u64, bytes: usize) -> bool {
        self.links.reserve_for_request(id, bytes)
    }

    /// Returns the number of queued bytes at which a link is full.
    fn full(&self) -> usize {
        FULL.min(self.limits.queued_bytes_per_connection / 4)
    }

    /// Returns the maximum number of bytes that the answer to a request can have.
    fn longest_answer(&mut self, id: u64, session: i64, request: &Bytes, now: i64) -> usize {
        let mut body = request.clone();
        let Some(link) = self.links.get(id) else { return 0 };
        let (world, staleness) = (
            self.members.world(link.member),
            Staleness { lag_ms: self.members.lag_ms(link.member), seen: link.seen },
        );
        let read =
            |op: i32, body: Bytes| Request::read(OpCode::from_number(op).ok()?, &mut Reader::new(body)).ok();
        let op = body.try_get_i32().and_then(|_| body.try_get_i32());
        let request = op.ok().and_then(|op| read(op, body));
        request.map_or(0, |request| self.state_of(world).longest_answer(staleness, session, &request, now))
    }

    /// Records that the session of a link is alive.
    fn note_contact_of(&mut self, id: u64, now: i64) {
        let Some(link) = self.links.get(id) else { return };
        if let Some(session) = link.session {
            self.note_contact(link.member, session, link.timeout_ms, now);
        }
    }

    /// Keeps the sessions alive whose requests wait for room, because the server does not see whether their
    /// clients send more. Makes room by closing links whose clients do not read.
    pub(super) fn attend_waiting(&mut self, now: i64) {
        let in_line = self.links.in_line();
        if in_line.is_empty() {
            return;
        }
        if !planted!(WaitingSessionExpires) {
            in_line.into_iter().for_each(|id| self.note_contact_of(id, now));
        }
        for id in self.links.stalled(now.saturating_sub(STALLED_MS)) {
            self.expel_stalled(id);
        }
    }
}
