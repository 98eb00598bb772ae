use super::clock::Clock;
use super::words;
use crate::config::Config;
use crate::state::{Effects, Handshake, Reply, State};
use bytes::{Buf, Bytes, BytesMut};
use docent_proto::{
    Code, ConnectRequest, DecodeError, Frames, OpCode, Reader, Record, ReplyHeader, Request, write_frame, xid,
};
use std::collections::{BTreeMap, HashMap};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;

/// Once so many bytes wait to be written to a link, no more requests of it are looked at.
const FULL: usize = 256 << 10;

/// What all links share: the state, and for each link the bytes that wait to be written. Both are under one lock, so that
/// events and replies are queued in the order of the changes they tell of.
pub(crate) struct Hub {
    inner: Mutex<Inner>,
    pub(crate) clock: Clock,
    frames: Frames,
}

pub(crate) struct Inner {
    pub(crate) state: State,
    links: BTreeMap<u64, Link>,
    by_session: HashMap<i64, u64>,
    last_link: u64,
    connections: usize,
}

struct Link {
    peer: SocketAddr,
    session: Option<i64>,
    output: BytesMut,
    ending: bool,
    wake: Arc<Notify>,
}

/// What a link's task does after its input was looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Progress {
    /// Read on.
    Hungry,
    /// Write first: the client does not keep up.
    Full,
    /// Write what there is, then close.
    Ending,
    /// Close now.
    Cut,
}

impl Hub {
    pub(crate) fn new(config: Config) -> Self {
        let clock = Clock::new();
        let frames = Frames::new(config.limits.frame_bytes);
        let connections = config.limits.connections;
        let state = State::new(config, clock.now_ms());
        let inner =
            Inner { state, links: BTreeMap::new(), by_session: HashMap::new(), last_link: 0, connections };
        Self { inner: Mutex::new(inner), clock, frames }
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Inner> {
        // A panic while the lock was held must not take every other link down with it.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a new link in; `None` when there are as many as allowed.
    pub(crate) fn enter(&self, peer: SocketAddr) -> Option<(u64, Arc<Notify>)> {
        let mut inner = self.lock();
        if inner.links.len() >= inner.connections {
            return None;
        }
        inner.last_link += 1;
        let (id, wake) = (inner.last_link, Arc::new(Notify::new()));
        let link =
            Link { peer, session: None, output: BytesMut::new(), ending: false, wake: Arc::clone(&wake) };
        inner.links.insert(id, link);
        Some((id, wake))
    }

    /// Answers all complete requests in `input`, until there are none or the client has to read first.
    pub(crate) fn receive(&self, id: u64, input: &mut BytesMut) -> Progress {
        let mut inner = self.lock();
        loop {
            let Some(link) = inner.links.get(&id) else { return Progress::Cut };
            if link.ending {
                return Progress::Ending;
            }
            if link.output.len() >= FULL {
                return Progress::Full;
            }
            let session = link.session;
            if session.is_none() && inner.answer_word(id, input) {
                continue;
            }
            let frame = match self.frames.next(input) {
                Ok(Some(frame)) => frame,
                Ok(None) => return Progress::Hungry,
                Err(error) => {
                    tracing::debug!(%error, "link closed");
                    inner.cut(id);
                    return Progress::Cut;
                }
            };
            let now = self.clock.now_ms();
            match session {
                None => inner.handshake(id, frame, now),
                Some(session) => inner.request(id, session, frame, now),
            }
        }
    }

    /// Takes what waits to be written to a link.
    pub(crate) fn take_output(&self, id: u64) -> BytesMut {
        self.lock().links.get_mut(&id).map(|link| link.output.split()).unwrap_or_default()
    }

    /// True once the link has a session.
    pub(crate) fn is_attached(&self, id: u64) -> bool {
        self.lock().links.get(&id).is_some_and(|link| link.session.is_some())
    }
}

impl Inner {
    /// Answers a four-letter word at the front of `input`; false when there is none.
    fn answer_word(&mut self, id: u64, input: &mut BytesMut) -> bool {
        let Some(text) = input.get(..words::LENGTH).and_then(|word| words::answer(word, self)) else {
            return false;
        };
        input.clear();
        if let Some(link) = self.links.get_mut(&id) {
            link.output.extend_from_slice(text.as_bytes());
            link.ending = true;
        }
        true
    }

    fn handshake(&mut self, id: u64, frame: Bytes, now: i64) {
        let Ok(request) = read_handshake(frame) else { return self.cut(id) };
        let Some(peer) = self.links.get(&id).map(|link| link.peer.ip()) else { return };
        // As in ZooKeeper the session leaves its old link whether the new one proves to be its owner or not.
        let is_ahead = request.last_zxid_seen > self.state.zxid();
        if let Some(old) = self.by_session.get(&request.session_id).copied().filter(|_| !is_ahead) {
            self.cut(old);
        }
        let handshake = self.state.connect(&request, peer, now);
        let Some(link) = self.links.get_mut(&id) else { return };
        match handshake {
            Handshake::Attached(response) => {
                write_frame(&mut link.output, |out| response.write(out));
                link.session = Some(response.session_id);
                self.by_session.insert(response.session_id, id);
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

    fn request(&mut self, id: u64, session: i64, mut frame: Bytes, now: i64) {
        const HEADER: usize = 8;
        if frame.len() < HEADER {
            return self.cut(id);
        }
        let (number, op) = (frame.get_i32(), frame.get_i32());
        let mut effects = Effects::default();
        let (reply, number) = match read_request(op, frame) {
            Ok(request) => {
                let number = if request == Request::Ping { xid::PING } else { number };
                (self.state.apply(session, &request, now, &mut effects), number)
            }
            Err(Unreadable::Body(OpCode::Auth)) => return self.cut(id),
            Err(Unreadable::Body(op)) => (self.state.unreadable(session, op, now), number),
            Err(Unreadable::Operation) => (self.state.unimplemented(session, now), number),
        };
        // The events of a change come before the reply to a request that saw it, also on the link that caused it.
        self.send_events(&effects);
        if let Some(link) = self.links.get_mut(&id) {
            link.reply(number, &reply);
        }
        self.leave_ended(&effects, Some(id));
    }

    /// Does what a step of the state asks for.
    pub(crate) fn carry_out(&mut self, effects: &Effects) {
        self.send_events(effects);
        self.leave_ended(effects, None);
    }

    fn send_events(&mut self, effects: &Effects) {
        const NO_ZXID: i64 = -1;
        for (session, event) in &effects.events {
            let Some(link) = self.by_session.get(session).and_then(|id| self.links.get_mut(id)) else {
                continue;
            };
            write_frame(&mut link.output, |out| {
                ReplyHeader { xid: xid::NOTIFICATION, zxid: NO_ZXID, code: Code::OK }.write(out);
                event.write(out);
            });
            link.wake.notify_one();
        }
    }

    /// Closes the links of sessions that ended, except the one that still has to be told.
    fn leave_ended(&mut self, effects: &Effects, except: Option<u64>) {
        for session in &effects.ended {
            match self.by_session.get(session).copied() {
                Some(id) if Some(id) != except => self.cut(id),
                _ => {}
            }
        }
    }

    /// Closes a link now. Its session goes on without it.
    pub(crate) fn cut(&mut self, id: u64) {
        let Some(link) = self.links.remove(&id) else { return };
        link.wake.notify_one();
        let Some(session) = link.session else { return };
        if self.by_session.get(&session) == Some(&id) {
            self.by_session.remove(&session);
            self.state.detach(session);
        }
    }

    /// Closes all links now.
    pub(crate) fn cut_all(&mut self) {
        let ids: Vec<u64> = self.links.keys().copied().collect();
        for id in ids {
            self.cut(id);
        }
    }

    pub(crate) fn link_count(&self) -> usize {
        self.links.len()
    }
}

impl Link {
    fn reply(&mut self, number: i32, reply: &Reply) {
        let code = reply.result.as_ref().err().copied().unwrap_or(Code::OK);
        write_frame(&mut self.output, |out| {
            ReplyHeader { xid: number, zxid: reply.zxid, code }.write(out);
            if let Ok(response) = &reply.result {
                response.write(out);
            }
        });
        self.ending |= reply.closes;
    }
}

/// What follows the known fields is not looked at, as in ZooKeeper, where newer clients may send more than older servers know.
fn read_handshake(frame: Bytes) -> Result<ConnectRequest, DecodeError> {
    ConnectRequest::read(&mut Reader::new(frame))
}

enum Unreadable {
    /// The operation is not one of ours.
    Operation,
    /// The operation is, but its fields are not what they should be.
    Body(OpCode),
}

fn read_request(op: i32, body: Bytes) -> Result<Request, Unreadable> {
    let op = OpCode::from_number(op).map_err(|_| Unreadable::Operation)?;
    Request::read(op, &mut Reader::new(body)).map_err(|error| match (op, error) {
        (OpCode::Check, _) => Unreadable::Operation,
        _ => Unreadable::Body(op),
    })
}
