use super::count::Timed;
use super::ensemble::Ensemble;
use super::faults::Unanswered;
use super::hub::Progress;
use super::members::{LEADER, MemberId};
use super::pipe::Pipe;
use super::traffic::Totals;
use super::words::{self, View, Word};
use crate::Dialect;
use crate::log::Entry;
use crate::state::{
    DELETE_CONTAINER, Effects, Handshake, HeldWrite, Refusal, Reply, Staleness, is_write, jumps_the_line,
    needs_leader,
};
use bytes::{Buf, Bytes, BytesMut};
use docent_proto::{
    ConnectRequest, ConnectResponse, DecodeError, OpCode, Reader, Record, Request, write_frame, xid,
};

impl Ensemble {
    /// Answers a four-letter word at the start of `input`. Returns `false` if there is none.
    ///
    /// # Errors
    /// If the answer must wait until there is room for it.
    pub(super) fn answer_word(&mut self, id: u64, input: &mut BytesMut, now: i64) -> Result<bool, Progress> {
        let Some(name) = words::name(input) else { return Ok(false) };
        // A word that is not allowed is refused without reading what follows it.
        let word = self.words.allow(name).then(|| Word::read(input));
        if word == Some(None) {
            return Ok(false);
        }
        let word = word.flatten();
        if word.is_some_and(Word::is_long) && !self.links.replies.reserve(id, self.limits.longest_reply()) {
            return Err(Progress::Full);
        }
        input.clear();
        self.count_received(id, words::LENGTH, now);
        let Some(view) = View::new(self, id, now) else { return Ok(false) };
        let member = view.id();
        let (text, is_whole) = match word {
            Some(word) => word.answer(view, self.limits.longest_reply()),
            None => (format!("{name} is not executed because it is not in the whitelist.\n"), true),
        };
        match word {
            Some(Word::Crst) => self.links.reset_activity(member),
            Some(Word::Stmk(mask)) => self.trace_mask = mask,
            Some(Word::Srst) => self.count(member, Totals::reset),
            _ => {}
        }
        if let Some(link) = self.links.get_mut(id) {
            link.output.extend_from_slice(text.as_bytes());
            link.ending = true;
        }
        self.count_sent(id, None);
        if !is_whole {
            let limit = self.limits.longest_reply();
            self.warn_link(id, Refusal { rule: "reply_bytes", value: limit.saturating_add(1), limit });
        }
        Ok(true)
    }

    /// Opens the session that a link requests, or attaches the link to the session. Returns the answer's data
    /// if its latency is counted.
    pub(super) fn handshake(&mut self, id: u64, frame: Bytes, now: i64) -> Option<Timed> {
        let Ok(mut request) = read_handshake(frame) else {
            self.cut(id);
            return None;
        };
        let (peer, member) = self.links.get(id).map(|link| (link.peer.ip(), link.member))?;
        self.count(member, |totals| totals.handshakes += 1);
        let world = self.members.world(member);
        let dialect = self.members.dialect(member);
        if !dialect.restores_sessions() {
            (request.session_id, request.last_zxid_seen) = (0, 0);
        }
        // As in ZooKeeper, the session leaves its old link even if the new link fails to prove that it owns
        // the session.
        let is_ahead = request.last_zxid_seen > self.state_of(world).zxid();
        let old = self.links.of_session(world, request.session_id);
        if let Some(old) = old.filter(|_| !is_ahead) {
            self.cut(old);
        }
        if world != LEADER && !is_ahead {
            self.hold_handshake(id, member, &request);
            return None;
        }
        let timeouts = self.members.timeouts_ms(member);
        let state = self.state_of(world);
        let handshake = state.connect(&request, timeouts, peer, now);
        // A new session is opened by a transaction, which the member that serves the session has seen.
        let seen = if request.session_id == 0 { state.zxid() } else { request.last_zxid_seen };
        let link = self.links.get_mut(id)?;
        match handshake {
            Handshake::Attached(response) => {
                let response = shown(response, dialect);
                write_frame(&mut link.output, |out| response.write(out));
                let (session, timeout_ms) = (response.session_id, response.timeout_ms);
                (link.session, link.timeout_ms, link.seen) = (Some(session), timeout_ms, seen);
                self.links.enter_session(LEADER, session, id);
                self.state.set_owner(session, member);
                // The leader already knows that the session was opened or moved. The opening of a session is
                // reported to it a second time.
                self.count_sent(id, None);
                if request.session_id == 0 {
                    self.note_contact(member, session, timeout_ms, now);
                    return Some(Timed::OPENED);
                }
            }
            Handshake::Expired(response) => {
                write_frame(&mut link.output, |out| response.write(out));
                link.ending = true;
                self.count_sent(id, None);
            }
            Handshake::OverLimit(refusal) => self.expel(id, refusal),
            Handshake::Refused(reason) => {
                self.log.push(Entry::NoSession(reason));
                self.cut(id);
            }
        }
        None
    }

    /// Answers a request. Returns the answer's data if its latency is counted.
    pub(super) fn request(&mut self, id: u64, session: i64, mut frame: Bytes, now: i64) -> Option<Timed> {
        const HEADER: usize = 8;
        if frame.len() < HEADER {
            self.cut(id);
            return None;
        }
        let (number, op) = (frame.get_i32(), frame.get_i32());
        let link = self.links.get(id)?;
        let (member, timeout_ms, seen, held) = (link.member, link.timeout_ms, link.seen, link.held);
        let world = self.members.world(member);
        if !is_login(op) {
            if let Some(refusal) = self.state_of(world).requires_sasl(session) {
                self.reply(id, number, &refusal, None);
                return None;
            }
            self.note_contact(member, session, timeout_ms, now);
        }
        let waits = |op| needs_leader(op) || (held && !jumps_the_line(op));
        if world != LEADER && OpCode::from_number(op).is_ok_and(waits) {
            self.hold_request(id, member, session, op, &frame);
            return None;
        }
        let staleness = Staleness { lag_ms: self.members.lag_ms(member), seen };
        let (mut effects, mut fate, mut asked) = (Effects::default(), None, None);
        let dialect = self.members.dialect(member);
        let (mut reply, number) = match self.read_unless_refused(member, op, frame) {
            Err(Unreadable::Refused) => (self.state_of(world).not_read_only(), number),
            Ok(request) if world == LEADER && self.is_refused(member, session, &request) => {
                self.state.refuse(request.op(), now);
                self.links.end(id);
                return None;
            }
            Ok(Request::Sasl { token: None }) => {
                self.cut(id);
                return None;
            }
            Ok(request) => {
                asked = (dialect == Dialect::Keeper2026).then(|| request.clone());
                fate = self.faults.meet(&request);
                let number = if request == Request::Ping { xid::PING } else { number };
                (self.state_of(world).apply_stale(staleness, session, &request, now, &mut effects), number)
            }
            Err(Unreadable::Body(op)) if jumps_the_line(op) => {
                self.cut(id);
                return None;
            }
            Err(Unreadable::Body(op)) => (self.state_of(world).unreadable(op, now), number),
            Err(Unreadable::Operation | Unreadable::ForServers) if dialect.is_keeper() => {
                self.cut(id);
                return None;
            }
            Err(Unreadable::ForServers) => (self.state_of(world).forbidden(now), number),
            Err(Unreadable::Operation) => (self.state_of(world).unimplemented(), number),
        };
        if let Some(request) = asked {
            self.state_of(world).show_containers(&request, &mut reply);
        }
        // The events of a change are sent before the reply to any request that saw the change, also on the
        // link that caused it.
        if let Some(refusal) = effects.refusal {
            self.warn_link(id, refusal);
        }
        self.count_work(id, effects.work());
        self.send_events(world, &effects.events);
        let failed = reply.result.is_err();
        self.reply(id, number, &reply, fate);
        if failed && OpCode::from_number(op) == Ok(OpCode::Auth) {
            self.count(member, |totals| totals.auth_failures += 1);
        }
        self.send_events(world, &effects.later);
        self.expel_flooded(world, &effects);
        self.leave_ended(&effects, Some(id));
        Timed::answer(number, op, failed)
    }

    /// Reads a request, unless its member is too old for the operation or is read-only and refuses it.
    fn read_unless_refused(
        &mut self,
        member: MemberId,
        op: i32,
        frame: Bytes,
    ) -> Result<Request, Unreadable> {
        let dialect = self.members.dialect(member);
        if OpCode::from_number(op).is_ok_and(|op| !dialect.knows(op)) {
            return Err(Unreadable::Operation);
        }
        let world = self.members.world(member);
        if self.state_of(world).refuses_write(op) {
            Err(Unreadable::Refused)
        } else {
            let request = read_request(op, frame)?;
            match dialect.knows_all_of(&request) {
                true => Ok(request),
                // ZooKeeper refuses the multi as a whole, because it cannot read the rest.
                false if dialect.is_keeper() => Err(Unreadable::Operation),
                false => Err(Unreadable::Body(request.op())),
            }
        }
    }

    /// Queues a reply, unless a fault suppresses it.
    fn reply(&mut self, id: u64, number: i32, reply: &Reply, fate: Option<Unanswered>) {
        let Some(link) = self.links.get_mut(id) else { return };
        if let Some(fate) = fate {
            link.ending |= reply.closes || fate == Unanswered::Broken;
            return;
        }
        let bytes = link.reply(number, reply);
        self.count_sent(id, Some(bytes));
        self.admit_bytes(id);
    }

    /// Returns whether the leader refuses a request because the session has moved to another member. Only
    /// requests that reach the leader are checked.
    fn is_refused(&self, member: MemberId, session: i64, request: &Request) -> bool {
        let is_asked = member == LEADER || needs_leader(request.op());
        is_asked && self.state.refuses_as_moved(session, member, request)
    }

    /// Leaves a link to a follower that is cut off without an answer to its handshake.
    fn hold_handshake(&mut self, id: u64, member: MemberId, request: &ConnectRequest) {
        self.links.hold(id);
        let timeouts = self.members.timeouts_ms(member);
        let bytes = Pipe::MESSAGE + request.password.len();
        if self.members.holding(member).is_none() || !self.admit_held(id, bytes) {
            return;
        }
        if let Some((_, pipe)) = self.members.holding(member) {
            pipe.attach(request, timeouts);
        }
    }

    /// Leaves a link to a follower that is cut off without an answer to its request.
    fn hold_request(&mut self, id: u64, member: MemberId, session: i64, op: i32, body: &Bytes) {
        self.links.hold(id);
        let request = read_request(op, body.clone()).ok().map(|request| request.op());
        let Some(op) = request.filter(|op| is_write(*op)) else { return };
        let Some((state, _)) = self.members.holding(member) else { return };
        let held = HeldWrite::new(state, session, op, body);
        if self.admit_held(id, Pipe::MESSAGE + held.len())
            && let Some((_, pipe)) = self.members.holding(member)
        {
            pipe.write(held);
        }
    }
}

/// Reads a handshake. Bytes after the known fields are ignored as in ZooKeeper, because newer clients may
/// send fields that older servers do not know.
fn read_handshake(frame: Bytes) -> Result<ConnectRequest, DecodeError> {
    ConnectRequest::read(&mut Reader::new(frame))
}

/// Returns whether `op` authenticates a client. In ZooKeeper, such a request does not keep the session alive.
fn is_login(op: i32) -> bool {
    matches!(OpCode::from_number(op), Ok(OpCode::Auth | OpCode::Sasl))
}

/// Returns the answer to a handshake in a dialect. Keeper knows neither passwords nor read-only servers.
fn shown(response: ConnectResponse, dialect: Dialect) -> ConnectResponse {
    match dialect.is_keeper() {
        true => ConnectResponse { password: Bytes::from_static(&[0; 16]), read_only: None, ..response },
        false => response,
    }
}

enum Unreadable {
    /// The request is refused, whether or not it can be read.
    Refused,
    /// The operation is unknown.
    Operation,
    /// The operation is reserved for servers.
    ForServers,
    /// The operation is known, but its fields cannot be read.
    Body(OpCode),
}

fn read_request(op: i32, body: Bytes) -> Result<Request, Unreadable> {
    let op = OpCode::from_number(op).map_err(|_| match op {
        DELETE_CONTAINER => Unreadable::ForServers,
        _ => Unreadable::Operation,
    })?;
    Request::read(op, &mut Reader::new(body)).map_err(|_| Unreadable::Body(op))
}
