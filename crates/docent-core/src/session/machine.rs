//! ZooKeeper's client protocol as a pure state machine: no I/O and no clock of its own.
//!
//! In: the time, link up or down, bytes received, requests submitted and withdrawn. Out: bytes to write, outcomes, fired
//! watches, the state of the link and the next time it wants to be called.

use super::requests::{Finished, InFlight, Requests, WatchRequest};
use super::watches::{Fires, WatchTable};
use super::{
    Cause, Lane, LinkError, LinkState, Outcome, Reply, SessionEnd, SessionSettings, Watch, WatchKind,
    Withdraw,
};
use crate::clock::Timestamp;
use crate::lease::Lease;
use bytes::{Bytes, BytesMut};
use docent_proto::{
    Code, ConnectRequest, ConnectResponse, Frames, OpCode, Reader, Record, ReplyHeader, Request,
    RequestFrame, Response, WatchEvent, write_frame, xid,
};
use std::collections::VecDeque;
use std::mem;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;

/// More bytes than this wait in the queue, where they can still be withdrawn, and not in the output.
const OUTPUT_WATERMARK: usize = 256 * 1024;

#[derive(Debug)]
pub(super) struct Machine {
    settings: SessionSettings,
    lease: Arc<Lease>,
    frames: Frames,
    phase: Phase,
    link: Link,
    losses: u64,
    identity: Option<Identity>,
    /// Smallest timeout granted so far, or the one to ask for.
    timeout: Duration,
    requests: Requests,
    next_xid: i32,
    /// Requests that set watches again on a new link; they go first.
    restore: VecDeque<Request>,
    pings: VecDeque<Timestamp>,
    watches: WatchTable,
    last_zxid: i64,
    last_sent: Timestamp,
    last_received: Timestamp,
    /// Send time of the newest request that was answered, whatever it was.
    last_answered: Timestamp,
    finished: Vec<Finished>,
    fires: Fires,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Open,
    /// Only cleanups are taken.
    Draining,
    /// The request to close is written once nothing waits before it.
    Closing {
        written: bool,
    },
    Ended(SessionEnd),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Link {
    Down,
    Handshake { sent_at: Timestamp, until: Timestamp },
    Up,
}

#[derive(Debug)]
struct Identity {
    id: i64,
    password: Bytes,
}

/// What is delivered once the machine is no longer locked: dropping it may call back into the machine.
#[derive(Debug, Default)]
pub(super) struct Deliveries {
    finished: Vec<Finished>,
    fires: Fires,
}

impl Deliveries {
    pub(super) fn deliver(self) {
        for (done, outcome) in self.finished {
            // Nobody waits for a request whose future was dropped.
            let _ = done.send(outcome);
        }
        for (subscriber, fired) in self.fires {
            let _ = subscriber.send(fired);
        }
    }
}

impl Machine {
    pub(super) fn new(settings: SessionSettings, lease: Arc<Lease>, now: Timestamp) -> Self {
        Self {
            frames: Frames::new(settings.inbound_limit),
            timeout: settings.timeout,
            last_zxid: settings.last_zxid,
            settings,
            lease,
            phase: Phase::Open,
            link: Link::Down,
            losses: 0,
            identity: None,
            requests: Requests::default(),
            next_xid: 1,
            restore: VecDeque::new(),
            pings: VecDeque::new(),
            watches: WatchTable::default(),
            last_sent: now,
            last_received: now,
            last_answered: now,
            finished: Vec::new(),
            fires: Vec::new(),
        }
    }

    pub(super) fn submit(
        &mut self,
        request: Request,
        lane: Lane,
    ) -> Result<(u64, oneshot::Receiver<Outcome>), Cause> {
        match self.phase {
            Phase::Open => {}
            Phase::Draining if lane == Lane::Cleanup => {}
            Phase::Draining | Phase::Closing { .. } => return Err(Cause::Ended(SessionEnd::Closed)),
            Phase::Ended(end) => return Err(Cause::Ended(end)),
        }
        if lane == Lane::Call {
            if self.requests.len() >= self.settings.queue_limit {
                return Err(Cause::QueueFull);
            }
            self.check_size(&request)?;
        }
        let (done, outcome) = oneshot::channel();
        Ok((self.requests.push(request, lane, Some(done)), outcome))
    }

    /// A frame above the servers' limit would make them drop the link, and everything in flight with it.
    fn check_size(&self, request: &Request) -> Result<(), Cause> {
        /// No header and no field besides paths and data comes near this.
        const SMALL: usize = 16 * 1024;
        let limit = self.settings.outbound_limit;
        if request.payload_len() + SMALL <= limit {
            return Ok(());
        }
        let mut frame = BytesMut::new();
        RequestFrame::encode_parts(0, request, &mut frame);
        let size = frame.len() - 4;
        if size <= limit { Ok(()) } else { Err(Cause::TooLarge { size, limit }) }
    }

    pub(super) fn withdraw(&mut self, id: u64) -> bool {
        self.requests.withdraw(id)
    }

    pub(super) fn unregister(&mut self, id: u64, path: &str, kind: WatchKind) {
        let forgotten = self.watches.unregister(id, path, kind);
        // On a link that is down there is no watch: it just is not set again.
        if forgotten && self.link == Link::Up && !self.requests.will_watch(path, kind) {
            let kind = match kind {
                WatchKind::Data | WatchKind::Exist => docent_proto::WatchKind::Data,
                WatchKind::Child => docent_proto::WatchKind::Children,
            };
            self.requests.push(Request::RemoveWatches { path: path.to_owned(), kind }, Lane::Cleanup, None);
        }
    }

    pub(super) fn drain(&mut self) {
        if self.phase == Phase::Open {
            self.phase = Phase::Draining;
            self.requests.end(SessionEnd::Closed, Some(Lane::Cleanup), &mut self.finished);
            self.watches.end(SessionEnd::Closed, &mut self.fires);
        }
    }

    pub(super) fn close(&mut self) {
        self.drain();
        if self.phase == Phase::Draining {
            self.phase = Phase::Closing { written: false };
            if self.identity.is_none() && self.link == Link::Down {
                self.end(SessionEnd::Closed);
            }
        }
    }

    /// A connection to a server was made: the handshake must be over by `until`.
    pub(super) fn link_up(&mut self, now: Timestamp, until: Timestamp, out: &mut BytesMut) {
        self.link = Link::Handshake { sent_at: now, until };
        self.last_sent = now;
        self.last_received = now;
        let identity = self.identity.as_ref();
        let request = ConnectRequest {
            last_zxid_seen: self.last_zxid,
            timeout_ms: i32::try_from(self.settings.timeout.as_millis()).unwrap_or(i32::MAX),
            session_id: identity.map_or(0, |identity| identity.id),
            password: identity
                .map_or_else(|| Bytes::from_static(&[0; 16]), |identity| identity.password.clone()),
            read_only: Some(false),
        };
        write_frame(out, |out| request.write(out));
    }

    pub(super) fn link_down(&mut self) {
        if self.link == Link::Up {
            self.losses += 1;
        }
        self.link = Link::Down;
        self.restore.clear();
        self.pings.clear();
        self.requests.link_lost(&mut self.finished);
        match self.phase {
            // The request to close may or may not have arrived; a session nobody re-attaches to ends by itself.
            Phase::Closing { written } if written || self.identity.is_none() => self.end(SessionEnd::Closed),
            _ => {}
        }
    }

    /// Takes complete frames off `input`. An error means that the link is of no use any more.
    pub(super) fn received(
        &mut self,
        now: Timestamp,
        input: &mut BytesMut,
        withdraw: &Arc<dyn Withdraw>,
    ) -> Result<(), LinkError> {
        self.last_received = now;
        while let Some(frame) = self.frames.next(input)? {
            match self.link {
                Link::Down => {}
                Link::Handshake { sent_at, .. } => self.handshake(sent_at, frame)?,
                Link::Up => self.frame(now, frame, withdraw)?,
            }
            if self.ended().is_some() {
                break;
            }
        }
        Ok(())
    }

    fn handshake(&mut self, sent_at: Timestamp, frame: Bytes) -> Result<(), LinkError> {
        let response = ConnectResponse::decode(frame)?;
        if response.timeout_ms <= 0 || response.session_id == 0 {
            if self.identity.is_none() {
                return Err(LinkError::Protocol("a new session was refused".to_owned()));
            }
            self.end(SessionEnd::Expired);
            return Ok(());
        }
        if response.read_only == Some(true) {
            return Err(LinkError::Protocol("the server is read-only".to_owned()));
        }
        if self.identity.as_ref().is_some_and(|identity| identity.id != response.session_id) {
            // Some servers hand out a new session without a word. Ours is gone.
            self.end(SessionEnd::Expired);
            return Ok(());
        }
        let granted = Duration::from_millis(u64::try_from(response.timeout_ms).unwrap_or(0));
        self.timeout = if self.identity.is_some() { self.timeout.min(granted) } else { granted };
        // Ask for what was first granted from now on, and let a smaller grant take effect before the link is used.
        if self.identity.is_none() {
            self.settings.timeout = granted;
        }
        self.lease.attached(granted, sent_at);
        self.identity = Some(Identity { id: response.session_id, password: response.password });
        self.last_answered = sent_at;
        self.link = Link::Up;
        self.restore = self.watches.restore(self.last_zxid).into_iter().map(Request::SetWatches).collect();
        Ok(())
    }

    fn frame(&mut self, now: Timestamp, frame: Bytes, withdraw: &Arc<dyn Withdraw>) -> Result<(), LinkError> {
        let mut reader = Reader::new(frame);
        let header = ReplyHeader::read(&mut reader)?;
        if header.zxid > 0 {
            self.last_zxid = self.last_zxid.max(header.zxid);
        }
        match header.xid {
            xid::NOTIFICATION => {
                let event = WatchEvent::decode(reader.into_rest())?;
                self.watches.fire(&event, &mut self.fires);
                Ok(())
            }
            xid::PING => {
                if let Some(sent_at) = self.pings.pop_front() {
                    self.last_answered = self.last_answered.max(sent_at);
                }
                Ok(())
            }
            xid => self.reply(now, xid, header, reader.into_rest(), withdraw),
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
            return Err(LinkError::Protocol(format!("reply to request {xid}, expected {expected:?}")));
        }
        if header.code == Code::SESSION_MOVED {
            return Err(LinkError::Protocol("the session moved to another server".to_owned()));
        }
        let op = self.requests.in_flight[0].op;
        let result = match header.code {
            Code::OK => Ok(Response::decode(op, body)?),
            code => Err(code),
        };
        let Some(in_flight) = self.requests.in_flight.pop_front() else { return Ok(()) };
        self.last_answered = self.last_answered.max(in_flight.sent_at);
        if in_flight.is_write && proves_session(header.code) {
            self.lease.renew(in_flight.sent_at, now);
        }
        if op == OpCode::CloseSession {
            self.end(SessionEnd::Closed);
            return Ok(());
        }
        let watch = in_flight.watch.and_then(|watch| self.watch(watch, &result, withdraw));
        if let Some(done) = in_flight.done {
            let reply = Reply { result, zxid: header.zxid, watch };
            self.finished.push((done, Outcome::Reply(reply)));
        }
        if header.code == Code::SESSION_EXPIRED {
            self.end(SessionEnd::Expired);
        }
        Ok(())
    }

    /// The watch that a read left at the server: none when the node is missing, except by `exists`.
    fn watch(
        &mut self,
        request: WatchRequest,
        result: &Result<Response, Code>,
        withdraw: &Arc<dyn Withdraw>,
    ) -> Option<Watch> {
        let kind = match (request.op, result) {
            (OpCode::Exists | OpCode::GetData, Ok(_)) => WatchKind::Data,
            (OpCode::Exists, Err(Code::NO_NODE)) => WatchKind::Exist,
            (OpCode::GetChildren | OpCode::GetChildren2, Ok(_)) => WatchKind::Child,
            _ => return None,
        };
        let (id, fired) = self.watches.register(&request.path, kind);
        Some(Watch { fired, id, path: request.path, kind, session: Some(Arc::clone(withdraw)) })
    }

    /// Appends what can be sent now to `out`.
    pub(super) fn write(&mut self, now: Timestamp, out: &mut BytesMut) {
        if self.link != Link::Up || self.ended().is_some() {
            return;
        }
        while let Some(request) = self.restore.pop_front() {
            self.send(now, xid::SET_WATCHES, &request, Lane::Cleanup, None, out);
        }
        while out.len() < OUTPUT_WATERMARK
            && let Some(queued) = self.requests.queue.pop_front()
        {
            let xid = self.next_xid();
            self.send(now, xid, &queued.request, queued.lane, queued.done, out);
        }
        if self.phase == (Phase::Closing { written: false }) && self.requests.queue.is_empty() {
            self.phase = Phase::Closing { written: true };
            let xid = self.next_xid();
            self.send(now, xid, &Request::CloseSession, Lane::Cleanup, None, out);
        }
        if now >= self.last_sent + self.timeout / 6 {
            RequestFrame::encode_parts(xid::PING, &Request::Ping, out);
            self.pings.push_back(now);
            self.last_sent = now;
        }
    }

    fn send(
        &mut self,
        now: Timestamp,
        xid: i32,
        request: &Request,
        lane: Lane,
        done: Option<oneshot::Sender<Outcome>>,
        out: &mut BytesMut,
    ) {
        RequestFrame::encode_parts(xid, request, out);
        self.last_sent = now;
        self.requests.in_flight.push_back(InFlight {
            xid,
            op: request.op(),
            sent_at: now,
            is_write: request.is_write(),
            lane,
            watch: WatchRequest::of(request),
            done,
        });
    }

    fn next_xid(&mut self) -> i32 {
        let xid = self.next_xid;
        self.next_xid = xid.checked_add(1).unwrap_or(1);
        xid
    }

    /// Looks at the time. An error means that the link is of no use any more.
    pub(super) fn tick(&mut self, now: Timestamp) -> Result<(), LinkError> {
        if self.link != Link::Up && self.abandon_at().is_some_and(|at| now >= at) {
            self.end(SessionEnd::Abandoned);
            return Ok(());
        }
        match self.link {
            Link::Down => Ok(()),
            Link::Handshake { until, .. } if now >= until => Err(LinkError::Handshake),
            Link::Up if self.silent_at().is_some_and(|at| now >= at) => Err(LinkError::Silent),
            Link::Handshake { .. } | Link::Up => Ok(()),
        }
    }

    /// When to call [`tick`](Self::tick) or [`write`](Self::write) next if nothing else happens.
    pub(super) fn next_deadline(&self) -> Option<Timestamp> {
        match self.link {
            Link::Down => self.abandon_at(),
            Link::Handshake { until, .. } => Some(self.abandon_at().map_or(until, |at| at.min(until))),
            Link::Up => {
                let ping = self.last_sent + self.timeout / 6;
                Some(self.silent_at().map_or(ping, |at| at.min(ping)))
            }
        }
    }

    /// When a link that owes a reply counts as lost: a third of the timeout after the last byte, or the whole timeout
    /// when bytes trickle in but the reply does not.
    fn silent_at(&self) -> Option<Timestamp> {
        let request = self.requests.in_flight.front().map(|in_flight| in_flight.sent_at);
        let oldest = request.into_iter().chain(self.pings.front().copied()).min()?;
        let quiet = self.last_received.max(oldest) + self.timeout / 3;
        Some(quiet.min(oldest + self.timeout))
    }

    /// When a session that cannot be re-attached is given up: one timeout after the last possible lease.
    fn abandon_at(&self) -> Option<Timestamp> {
        let _attached = self.identity.as_ref()?;
        Some(self.last_answered + self.timeout.saturating_sub(self.lease.margin()) + self.timeout)
    }

    fn end(&mut self, end: SessionEnd) {
        self.phase = Phase::Ended(end);
        self.lease.end();
        self.requests.end(end, None, &mut self.finished);
        self.requests.in_flight.clear();
        self.watches.end(end, &mut self.fires);
    }

    pub(super) fn ended(&self) -> Option<SessionEnd> {
        match self.phase {
            Phase::Ended(end) => Some(end),
            _ => None,
        }
    }

    pub(super) fn deliveries(&mut self) -> Deliveries {
        Deliveries { finished: mem::take(&mut self.finished), fires: mem::take(&mut self.fires) }
    }

    pub(super) fn link_state(&self) -> LinkState {
        LinkState { up: self.link == Link::Up, losses: self.losses }
    }

    pub(super) fn id(&self) -> i64 {
        self.identity.as_ref().map_or(0, |identity| identity.id)
    }

    pub(super) fn last_zxid(&self) -> i64 {
        self.last_zxid
    }

    /// The timeout granted, or the one asked for.
    pub(super) fn timeout(&self) -> Duration {
        self.timeout
    }
}

/// True when only the servers' quorum can have given this answer to a write, after looking at the session. Anything else
/// (a throttled request, an operation switched off) may have been said by one server alone.
fn proves_session(code: Code) -> bool {
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
