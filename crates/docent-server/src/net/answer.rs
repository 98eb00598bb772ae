use super::ensemble::Ensemble;
use super::members::{LEADER, MemberId};
use super::words;
use crate::state::{Behind, Effects, Handshake, is_write, needs_leader};
use bytes::{Buf, Bytes, BytesMut};
use docent_proto::{ConnectRequest, DecodeError, OpCode, Reader, Record, Request, write_frame, xid};

impl Ensemble {
    /// Answers a four-letter word at the front of `input`; false when there is none.
    pub(super) fn answer_word(&mut self, id: u64, input: &mut BytesMut) -> bool {
        let Some(text) = input.get(..words::LENGTH).and_then(|word| words::answer(word, self)) else {
            return false;
        };
        input.clear();
        if let Some(link) = self.links.get_mut(id) {
            link.output.extend_from_slice(text.as_bytes());
            link.ending = true;
        }
        true
    }

    pub(super) fn handshake(&mut self, id: u64, frame: Bytes, now: i64) {
        let Ok(request) = read_handshake(frame) else { return self.cut(id) };
        let Some((peer, member)) = self.links.get(id).map(|link| (link.peer.ip(), link.member)) else {
            return;
        };
        let world = self.members.world(member);
        // As in ZooKeeper the session leaves its old link whether or not the new one proves to own it.
        let is_ahead = request.last_zxid_seen > self.state_of(world).zxid();
        let old = self.links.of_session(world, request.session_id);
        if let Some(old) = old.filter(|_| !is_ahead) {
            self.cut(old);
        }
        if world != LEADER && !is_ahead {
            return self.hold_handshake(id, member, request);
        }
        let timeouts = self.members.timeouts_ms(member);
        let state = self.state_of(world);
        let handshake = state.connect(&request, timeouts, peer, now);
        // A session is opened by a transaction, which the member that serves it has seen.
        let seen = if request.session_id == 0 { state.zxid() } else { request.last_zxid_seen };
        let Some(link) = self.links.get_mut(id) else { return };
        match handshake {
            Handshake::Attached(response) => {
                write_frame(&mut link.output, |out| response.write(out));
                let (session, timeout_ms) = (response.session_id, response.timeout_ms);
                (link.session, link.timeout_ms, link.seen) = (Some(session), timeout_ms, seen);
                self.links.enter_session(LEADER, session, id);
                self.state.set_owner(session, member);
                // The leader knows by itself when a session was opened or moved, and hears of a new one once
                // more.
                if request.session_id == 0 {
                    self.hear(member, session, timeout_ms, now);
                }
            }
            Handshake::Gone(response) => {
                write_frame(&mut link.output, |out| response.write(out));
                link.ending = true;
            }
            Handshake::Refused(reason) => {
                tracing::debug!(reason, "link refused");
                self.cut(id);
            }
        }
    }

    pub(super) fn request(&mut self, id: u64, session: i64, mut frame: Bytes, now: i64) {
        const HEADER: usize = 8;
        if frame.len() < HEADER {
            return self.cut(id);
        }
        let (number, op) = (frame.get_i32(), frame.get_i32());
        let Some(link) = self.links.get(id) else { return };
        let (member, timeout_ms, seen, held) = (link.member, link.timeout_ms, link.seen, link.held);
        self.hear(member, session, timeout_ms, now);
        let world = self.members.world(member);
        // Credentials do not wait in line.
        let waits = |op| needs_leader(op) || (held && op != OpCode::Auth);
        if world != LEADER && OpCode::from_number(op).is_ok_and(waits) {
            return self.hold_request(id, member, session, read_request(op, frame));
        }
        let behind = Behind { lag_ms: self.members.lag_ms(member), seen };
        let mut effects = Effects::default();
        let (reply, number) = match read_request(op, frame) {
            Ok(request) if world == LEADER && self.is_refused(member, session, &request) => {
                self.state.refuse(request.op(), now);
                return self.links.end(id);
            }
            Ok(request) => {
                let number = if request == Request::Ping { xid::PING } else { number };
                (self.state_of(world).apply_behind(behind, session, &request, now, &mut effects), number)
            }
            Err(Unreadable::Body(OpCode::Auth)) => return self.cut(id),
            Err(Unreadable::Body(op)) => (self.state_of(world).unreadable(op, now), number),
            Err(Unreadable::Operation) => (self.state_of(world).unimplemented(), number),
        };
        // The events of a change come before the reply to a request that saw it, also on the link that caused
        // it.
        self.send_events(world, &effects.events);
        if let Some(link) = self.links.get_mut(id) {
            link.reply(number, &reply);
        }
        self.send_events(world, &effects.later);
        self.leave_ended(&effects, Some(id));
    }

    /// True when the leader has to do with a request that it refuses, because the session went elsewhere.
    fn is_refused(&self, member: MemberId, session: i64, request: &Request) -> bool {
        let is_asked = member == LEADER || needs_leader(request.op());
        is_asked && self.state.refuses_as_moved(session, member, request)
    }

    /// A follower that is cut off leaves a link without an answer to its handshake.
    fn hold_handshake(&mut self, id: u64, member: MemberId, request: ConnectRequest) {
        self.links.hold(id);
        let timeouts = self.members.timeouts_ms(member);
        if let Some((_, pipe)) = self.members.holding(member) {
            pipe.attach(request, timeouts);
        }
    }

    /// A follower that is cut off leaves a link without an answer to a request.
    fn hold_request(
        &mut self,
        id: u64,
        member: MemberId,
        session: i64,
        request: Result<Request, Unreadable>,
    ) {
        self.links.hold(id);
        if let Some((state, pipe)) = self.members.holding(member)
            && let Ok(request) = request
            && is_write(request.op())
        {
            pipe.write(state, session, request);
        }
    }
}

/// Reads a handshake. Bytes behind the known fields are ignored, as in ZooKeeper, where newer clients may
/// send more than older servers know.
fn read_handshake(frame: Bytes) -> Result<ConnectRequest, DecodeError> {
    ConnectRequest::read(&mut Reader::new(frame))
}

enum Unreadable {
    /// The operation is not one of ours.
    Operation,
    /// The operation is, but its fields cannot be read.
    Body(OpCode),
}

fn read_request(op: i32, body: Bytes) -> Result<Request, Unreadable> {
    let op = OpCode::from_number(op).map_err(|_| Unreadable::Operation)?;
    Request::read(op, &mut Reader::new(body)).map_err(|error| match (op, error) {
        (OpCode::Check, _) => Unreadable::Operation,
        _ => Unreadable::Body(op),
    })
}
