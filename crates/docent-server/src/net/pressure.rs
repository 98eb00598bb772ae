//! Requests that wait: for their own client to read, or for room in the memory that all links share.

use super::buffers::Outgoing;
use super::ensemble::Ensemble;
use super::links::SMALL;
use crate::state::Behind;
use bytes::{Buf, Bytes};
use docent_proto::{OpCode, Reader, Request};

/// Bytes that wait to be written to a link from which on only small requests are answered.
const FULL: usize = 256 << 10;

/// Time after which a client that reads nothing has to make room for others.
const STALLED_MS: i64 = 60_000;

impl Ensemble {
    /// Takes note of what the link's task has written and received. While the server does not answer a link,
    /// what comes in is the only sign of life of its session.
    pub(super) fn take_note(&mut self, id: u64, coming: usize, output: &Outgoing) {
        let now = self.clock.now_ms();
        let Some(link) = self.links.get_mut(id) else { return };
        link.wrote(output, now);
        if link.coming(coming) && link.is_full {
            self.hear_from(id, now);
        }
        self.links.settle(id);
    }

    /// True if the next request of a link may be answered now. Otherwise its client has to read first, or the
    /// link waits for room for the reply.
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
        // What is queued for the client itself is written first, so that each link has one large reply at
        // most while others wait.
        if queued > SMALL {
            self.links.leave_line(id);
            return false;
        }
        let has_room = self.links.replies.ask(id, bytes);
        if !has_room {
            self.hear_from(id, now);
        }
        has_room
    }

    /// True if a link may read a request of `bytes` bytes now. Otherwise it waits for room.
    pub(super) fn has_room_for_request(&mut self, id: u64, bytes: usize) -> bool {
        self.links.ask_for_request(id, bytes)
    }

    /// Bytes that wait to be written to a link from which on it is full.
    fn full(&self) -> usize {
        FULL.min(self.limits.queued_bytes_per_connection / 4)
    }

    /// Most bytes that the answer to a request can have.
    fn longest_answer(&mut self, id: u64, session: i64, request: &Bytes, now: i64) -> usize {
        let mut body = request.clone();
        let Some(link) = self.links.get(id) else { return 0 };
        let (world, behind) = (
            self.members.world(link.member),
            Behind { lag_ms: self.members.lag_ms(link.member), seen: link.seen },
        );
        let read =
            |op: i32, body: Bytes| Request::read(OpCode::from_number(op).ok()?, &mut Reader::new(body)).ok();
        let op = body.try_get_i32().and_then(|_| body.try_get_i32());
        let request = op.ok().and_then(|op| read(op, body));
        request.map_or(0, |request| self.state_of(world).longest_answer(behind, session, &request, now))
    }

    /// Takes note that the session of a link is alive.
    fn hear_from(&mut self, id: u64, now: i64) {
        let Some(link) = self.links.get(id) else { return };
        if let Some(session) = link.session {
            self.hear(link.member, session, link.timeout_ms, now);
        }
    }

    /// Keeps the sessions alive whose requests wait for room: the server does not see whether more comes in.
    /// Room is made by closing links whose clients do not read.
    pub(super) fn attend_waiting(&mut self, now: i64) {
        let in_line = self.links.in_line();
        if in_line.is_empty() {
            return;
        }
        if !planted!(WaitingSessionExpires) {
            in_line.into_iter().for_each(|id| self.hear_from(id, now));
        }
        for id in self.links.stalled(now.saturating_sub(STALLED_MS)) {
            self.expel_stalled(id);
        }
    }
}
