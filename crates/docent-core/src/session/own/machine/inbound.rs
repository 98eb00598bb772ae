//! Frames from the server.

use super::{Link, Machine, SessionKey};
use crate::session::requests::{Subscriber, WatchRequest};
use crate::session::{
    Cause, LinkError, Outcome, Registration, Reply, SessionEnd, Watch, WatchKind, Withdraw,
};
use crate::time::Timestamp;
use bytes::{Buf, Bytes, BytesMut};
use docent_proto::{
    Code, ConnectResponse, DecodeError, EventKind, MultiResult, OpCode, Reader, Record, ReplyHeader, Request,
    Response, WatchEvent, xid,
};
use std::sync::Arc;
use std::time::Duration;

/// Maximum number of frames decoded before the machine is asked again what it has to send.
const MAX_FRAMES: usize = 256;

impl Machine {
    /// Decodes complete frames from `input`, up to a limit that keeps the call short. Returns true if more
    /// frames may be left. An error means that the link is no longer usable.
    pub(in crate::session) fn received(
        &mut self,
        now: Timestamp,
        input: &mut BytesMut,
        withdraw: &Arc<dyn Withdraw>,
    ) -> Result<bool, LinkError> {
        let mut left = MAX_FRAMES;
        while !self.skip(now, input) {
            if left == 0 {
                return Ok(true);
            }
            left -= 1;
            let frame = match self.frames.next(input) {
                Ok(Some(frame)) => frame,
                Ok(None) => break,
                Err(error) if self.discard_reply(now, error.clone(), input)? => continue,
                Err(_) => break,
            };
            if !is_notification(&frame) {
                self.last_received = now;
            }
            match self.link {
                Link::Down => {}
                Link::Handshake { sent_at, until } => self.handshake(now, sent_at, until, frame)?,
                Link::Authenticating { .. } | Link::Attached => self.frame(now, frame, withdraw)?,
            }
            if self.ended().is_some() {
                break;
            }
        }
        if !input.is_empty() {
            // The input begins with what may be a long reply.
            self.last_received = now;
        }
        Ok(false)
    }

    fn handshake(
        &mut self,
        now: Timestamp,
        sent_at: Timestamp,
        until: Timestamp,
        frame: Bytes,
    ) -> Result<(), LinkError> {
        let response = ConnectResponse::decode(frame)?;
        if response.timeout_ms <= 0 || response.session_id == 0 {
            if self.key.is_none() {
                return Err(LinkError::Protocol("the server refused to open a session".to_owned()));
            }
            self.end(SessionEnd::Expired);
            return Ok(());
        }
        // A read-only server has no quorum, so nothing that guards and kept nodes rely on holds there
        // (decision 10).
        let is_read_only = response.read_only == Some(true);
        if is_read_only && !self.asks_read_only {
            return Err(LinkError::Protocol("the server is read-only".to_owned()));
        }
        if self.key.as_ref().is_some_and(|key| key.id != response.session_id) {
            // Some servers assign a new session without an error. The previous session has expired.
            self.end(SessionEnd::Expired);
            return Ok(());
        }
        self.greeted(&response, now);
        self.read_only_since = is_read_only.then_some(now);
        let granted = Duration::from_millis(u64::try_from(response.timeout_ms).unwrap_or(0));
        // The smallest timeout ever granted counts, because the lease must hold for it (decision 3).
        self.timeout = if self.key.is_some() { self.timeout.min(granted) } else { granted };
        // From now on the client asks for the timeout that was granted first. A smaller grant shortens the
        // lease before the link is used (decision 3).
        if self.key.is_none() {
            self.settings.timeout = granted;
        }
        self.lease.attached(granted, sent_at);
        self.leader_contact.attached(sent_at);
        let password = response.password.to_vec().into();
        self.key = Some(SessionKey { id: response.session_id, password });
        self.last_answered = sent_at;
        self.begin_authentication(until);
        // If an earlier attempt to restore the watches was not acknowledged, changes since that attempt are
        // still unseen. The watches are therefore restored as of that attempt, not as of `last_zxid`.
        let since = *self.restore_from.get_or_insert(self.last_zxid);
        let persistent = self.restore_persistent(since);
        let persists = |path: &str| self.persistent.concerns(path);
        let chunks = self.watches.restore(since, self.settings.outbound_limit, persists);
        // Persistent watches come last: if a path has both kinds, servers before 3.9 keep the mode set last.
        self.restore = chunks.into_iter().map(Request::SetWatches).chain(persistent).collect();
        self.unrestored = self.restore.len();
        self.all_restored();
        Ok(())
    }

    /// Once all watches are restored, the changes of the gap have arrived as events.
    fn all_restored(&mut self) {
        if self.unrestored == 0 {
            self.restore_from = None;
        }
    }

    fn frame(&mut self, now: Timestamp, frame: Bytes, withdraw: &Arc<dyn Withdraw>) -> Result<(), LinkError> {
        let mut reader = Reader::new(frame);
        let header = ReplyHeader::read(&mut reader)?;
        if reports_transaction(header) || planted!(FoldedZxid) {
            self.last_zxid = self.last_zxid.max(header.zxid);
        }
        // Servers before 3.9 put a transaction number on replies only, not on events.
        self.seen_zxid = self.seen_zxid.max(header.zxid);
        match header.xid {
            xid::NOTIFICATION => {
                let event = WatchEvent::decode(reader.into_rest())?;
                self.event(&event);
                Ok(())
            }
            xid::PING => {
                if let Some(sent_at) = self.pings.pop_front() {
                    self.answered(sent_at, now);
                    if planted!(LeaseFromReads) {
                        self.lease.renew(sent_at, sent_at, now);
                    }
                }
                Ok(())
            }
            xid::AUTH => {
                self.credentials_answered(header.code);
                Ok(())
            }
            xid if self.sasl.as_ref().is_some_and(|sasl| sasl.xid == xid) => {
                self.sasl_answered(header.code, reader.into_rest())
            }
            xid => self.reply(now, xid, header, reader.into_rest(), withdraw),
        }
    }

    /// Handles an event of a one-shot watch, of a persistent watch, or of both.
    fn event(&mut self, event: &WatchEvent) {
        if event.kind == EventKind::Deleted {
            self.ephemerals.deleted(&event.path);
        }
        self.requests.changed(&event.path, &mut self.deliveries.finished);
        self.watches.fire(event, &mut self.deliveries.fires);
        self.persistent.fire(event, &mut self.deliveries.persistent);
        if !self.persistent.orphans.is_empty() {
            self.remove_forsaken();
        }
    }

    fn reply(
        &mut self,
        now: Timestamp,
        xid: i32,
        header: ReplyHeader,
        body: Bytes,
        withdraw: &Arc<dyn Withdraw>,
    ) -> Result<(), LinkError> {
        let expected = self.requests.in_flight.front().map(|in_flight| in_flight.xid);
        if expected != Some(xid) {
            self.refused_early(header, now);
            return Err(LinkError::Protocol(format!("reply to request {xid}, expected {expected:?}")));
        }
        let op = self.requests.in_flight[0].op;
        let mut result = match header.code {
            Code::OK => Ok(Response::decode(op, body)?),
            code => Err(code),
        };
        let verdict = verdict(&result);
        match (op, verdict) {
            // The session lives on at another server. This link is no longer usable, and the refusal proves
            // nothing (decision 3).
            (_, Code::SESSION_MOVED) => {
                return Err(LinkError::Protocol("the session moved to another server".to_owned()));
            }
            (OpCode::AddWatch, code) => self.persistent_answered(code, now)?,
            (OpCode::SetWatches2, code) => {
                self.persistent_answered(code, now)?;
                self.unrestored = self.unrestored.saturating_sub(1);
                self.all_restored();
            }
            (OpCode::SetWatches, code) if xid == xid::SET_WATCHES && code != Code::OK => {
                self.refused_early(header, now);
                return Err(LinkError::Protocol(format!("cannot restore the watches: {code}")));
            }
            (OpCode::SetWatches, _) if xid == xid::SET_WATCHES => {
                self.unrestored = self.unrestored.saturating_sub(1);
                self.all_restored();
            }
            (_, Code::SESSION_EXPIRED) => result = Err(verdict),
            _ => {}
        }
        let Some(in_flight) = self.requests.answered() else { return Ok(()) };
        let is_repeated = self.learn(&in_flight, verdict, header.zxid, now);
        if in_flight.id == 0 && self.probe == in_flight.ability {
            self.probe = None;
        }
        if let Ok(response) = &mut result {
            self.complete(in_flight.statless, header.zxid, response);
        }
        if self.doubts == Some(in_flight.id) {
            self.doubts = None;
        }
        self.suspect.answered(in_flight.size);
        self.ephemerals.answered(in_flight.ephemerals, &result);
        self.answered(in_flight.sent_at, now);
        // Reads, pings and `sync` do not renew the lease, because a server that was cut off from its leader
        // keeps answering them (decision 3). The lease counts from the send time, because the reply may be
        // old when it arrives.
        if (in_flight.is_write || planted!(LeaseFromReads)) && proves_session(verdict) {
            self.lease.renew(in_flight.sent_at, in_flight.leader_contact, now);
        }
        if op == OpCode::CloseSession {
            self.is_closed = true;
            self.end(SessionEnd::Closed);
            return Ok(());
        }
        // If no caller waits for the reply, no `Watch` is created, because it would be dropped here, under
        // the machine's lock.
        if let Some(done) = in_flight.done {
            let mut reply = Reply::new(result, header.zxid);
            let mut is_unserved = false;
            match in_flight.watch {
                // The server refused the persistent watch. The caller repeats the read.
                Some(WatchRequest::Read { path, .. })
                    if in_flight.is_served && !self.persistent.at_server.contains(&*path) =>
                {
                    is_unserved = true;
                }
                Some(WatchRequest::Read { path, op }) => {
                    reply.watch = self.watch(path, op, &reply.result, withdraw);
                }
                Some(WatchRequest::Data(paths)) if reply.result.is_ok() => {
                    reply.watches = registered(paths, in_flight.subscribers, withdraw);
                }
                Some(WatchRequest::Data(paths)) => self.unsubscribe(&paths, &in_flight.subscribers),
                None => {}
            }
            let outcome = match () {
                () if is_unserved => Outcome::Unknown(Cause::LinkLost),
                // The next attempt is sent in another form.
                () if is_repeated => Outcome::NotSent(Cause::LinkLost),
                () => Outcome::Reply(reply),
            };
            self.deliveries.finished.push((done, outcome));
        } else if let Some(WatchRequest::Data(paths)) = &in_flight.watch {
            self.unsubscribe(paths, &in_flight.subscribers);
        }
        match verdict {
            Code::SESSION_EXPIRED => self.end(SessionEnd::Expired),
            // The servers require credentials of a kind that this client does not have.
            Code::SESSION_CLOSED_REQUIRE_SASL_AUTH => self.refused(LinkError::Credentials(verdict)),
            _ => {}
        }
        Ok(())
    }

    pub(super) fn answered(&mut self, sent: Timestamp, now: Timestamp) {
        self.last_answered = self.last_answered.max(sent);
        self.leader_contact.answered(sent, now);
    }

    /// Returns the watch that a read set at the server: none if the node does not exist, except for `exists`.
    fn watch(
        &mut self,
        path: Arc<str>,
        op: OpCode,
        result: &Result<Response, Code>,
        withdraw: &Arc<dyn Withdraw>,
    ) -> Option<Box<Watch>> {
        let kind = match (op, result) {
            (OpCode::Exists | OpCode::GetData, Ok(_)) => WatchKind::Data,
            (OpCode::Exists, Err(Code::NO_NODE)) => WatchKind::Exist,
            (OpCode::GetChildren | OpCode::GetChildren2, Ok(_)) => WatchKind::Child,
            _ => return None,
        };
        let (id, fired) = self.watches.register(Arc::clone(&path), kind);
        let registration = Registration { id, path, kind, session: Arc::clone(withdraw) };
        Some(Box::new(Watch { fired, registration: Some(registration) }))
    }

    /// Removes the subscribers of watches that a request was to set.
    pub(super) fn unsubscribe(&mut self, paths: &[Arc<str>], subscribers: &[Subscriber]) {
        for (path, (id, _)) in paths.iter().zip(subscribers) {
            self.unregister(*id, path, WatchKind::Data);
        }
    }
}

/// Returns the watches on the data of `paths` that one request has set. Some may have fired before its reply.
fn registered(paths: Vec<Arc<str>>, subscribers: Vec<Subscriber>, session: &Arc<dyn Withdraw>) -> Vec<Watch> {
    let watches = paths.into_iter().zip(subscribers).map(|(path, (id, fired))| {
        let registration = Registration { id, path, kind: WatchKind::Data, session: Arc::clone(session) };
        Watch { fired, registration: Some(registration) }
    });
    watches.collect()
}

/// Returns true for events. An event answers no request: a link that no longer carries requests to the server
/// may still deliver events.
fn is_notification(frame: &[u8]) -> bool {
    frame.starts_with(&xid::NOTIFICATION.to_be_bytes())
}

/// Returns true if this link has delivered everything that happened up to the header's transaction. Servers
/// queue the events of a transaction on a link before they send a reply as of that transaction. This includes
/// pings: both carry the last completed transaction. An event carries the number of its own transaction (from
/// ZooKeeper 3.9 on; −1 before), and more events of that transaction may follow. If the link were lost in
/// between and the watches restored as of that number, the changes of those events would be missed.
fn reports_transaction(header: ReplyHeader) -> bool {
    header.zxid > 0 && header.xid != xid::NOTIFICATION
}

/// Returns the code that a reply amounts to: for a failed multi, the code of the operation that failed.
pub(in crate::session) fn verdict(result: &Result<Response, Code>) -> Code {
    match result {
        Err(code) => *code,
        Ok(Response::Multi(results)) => {
            let failed = results.iter().filter_map(|result| match result {
                MultiResult::Failed(code) => Some(*code),
                _ => None,
            });
            let uninformative = [Code::OK, Code::RUNTIME_INCONSISTENCY];
            failed.into_iter().find(|code| !uninformative.contains(code)).unwrap_or(Code::OK)
        }
        Ok(_) => Code::OK,
    }
}

/// Returns true if only the servers' quorum can have given this answer to a write, after checking the
/// session. A refusal then proves as much as an acknowledgement. Any other code (a throttled request, a
/// disabled operation) may come from a single server that has lost its leader, and proves nothing (decision
/// 3).
pub(in crate::session) fn proves_session(code: Code) -> bool {
    matches!(
        code,
        Code::OK
            | Code::NO_NODE
            | Code::NO_AUTH
            | Code::BAD_VERSION
            | Code::NO_CHILDREN_FOR_EPHEMERALS
            | Code::NODE_EXISTS
            | Code::NOT_EMPTY
            | Code::INVALID_ACL
            | Code::QUOTA_EXCEEDED
    )
}

// Replies above the limit: each fails its request, and is discarded as it arrives.

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
