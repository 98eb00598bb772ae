//! The protocol on virtual time, against a server that is scripted frame by frame.

mod abilities;
mod attach;
mod credentials;
mod deadlines;
mod end;
mod heartbeat;
mod lease;
mod nonsense;
mod oversize;
mod pauses;
mod persistent;
mod read_only;
mod requests;
mod suspect;
mod watches;

use super::*;
use crate::session::{Credentials, Fired, LinkError, Withdraw};
use bytes::{Bytes, BytesMut};
use docent_proto::{
    Code, ConnectRequest, ConnectResponse, EventKind, MultiOp, MultiResult, OpCode, Record, ReplyHeader,
    RequestFrame, Response, Stat, WatchEvent, write_frame, xid,
};
use std::mem;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::sync::oneshot::Receiver;

const T: Duration = Duration::from_secs(12);
const TICK: Duration = Duration::from_secs(1);
const SESSION: i64 = 0x51;

/// Represents the machine's lock: a callback while bytes are processed would deadlock.
#[derive(Debug, Default)]
struct Lock(AtomicBool);

impl Withdraw for Lock {
    fn withdraw(&self, _id: u64) -> bool {
        false
    }

    fn unregister(&self, _id: u64, _path: &str, _kind: WatchKind) {
        assert!(!self.0.load(Ordering::SeqCst), "a handle was dropped under the machine's lock");
    }
}

/// A machine, its time, and its output to the server.
struct World {
    machine: Machine,
    lease: Arc<Lease>,
    now: Timestamp,
    output: Vec<u8>,
}

impl World {
    fn new() -> Self {
        Self::with(Vec::new())
    }

    fn with(credentials: Vec<Credentials>) -> Self {
        let settings = SessionSettings {
            timeout: T,
            last_zxid: 7,
            queue_limit: 3,
            inbound_limit: 1024,
            outbound_limit: 64 * 1024,
            ephemeral_limit: 64 * 1024,
            credentials,
            sasl: None,
            only_reads: false,
            abilities: Arc::default(),
        };
        let lease = Arc::new(Lease::new(TICK));
        let now = Timestamp::default() + Duration::from_secs(1_000);
        let machine = Machine::new(settings, Arc::clone(&lease), now);
        Self { machine, lease, now, output: Vec::new() }
    }

    fn attached() -> Self {
        let mut world = Self::new();
        world.attach(SESSION, T).unwrap();
        world
    }

    fn connected(&mut self) -> ConnectRequest {
        self.machine.connected(self.now, self.now + T / 3, &mut self.output);
        let frame = self.frames().pop().unwrap();
        ConnectRequest::decode(frame).unwrap()
    }

    fn attach(&mut self, session_id: i64, timeout: Duration) -> Result<ConnectRequest, LinkError> {
        let request = self.connected();
        let response = ConnectResponse {
            timeout_ms: i32::try_from(timeout.as_millis()).unwrap(),
            session_id,
            password: Bytes::from_static(b"secret"),
            read_only: Some(false),
        };
        self.frame(|out| response.write(out)).map(|()| request)
    }

    fn pass(&mut self, time: Duration) {
        self.now = self.now + time;
    }

    fn submit(&mut self, request: Request) -> Result<(u64, Receiver<Outcome>), Cause> {
        self.machine.submit(request, Lane::Call, None)
    }

    fn get(&mut self, path: &str, watch: bool) -> (u64, Receiver<Outcome>) {
        self.submit(Request::GetData { path: path.to_owned(), watch }).unwrap()
    }

    fn check(&mut self) -> Receiver<Outcome> {
        let check = MultiOp::Check { path: "/a".to_owned(), version: -1 };
        self.submit(Request::Multi(vec![check])).unwrap().1
    }

    fn frames(&mut self) -> Vec<Bytes> {
        let frames = Frames::new(1024 * 1024);
        let mut output = BytesMut::from(&*mem::take(&mut self.output));
        std::iter::from_fn(|| frames.next(&mut output).unwrap()).collect()
    }

    /// Returns the frames that the machine writes now.
    fn written(&mut self) -> Vec<RequestFrame> {
        self.machine.write(self.now, true, &mut self.output);
        self.frames().into_iter().map(|frame| RequestFrame::decode(frame).unwrap()).collect()
    }

    fn frame(&mut self, body: impl FnOnce(&mut BytesMut)) -> Result<(), LinkError> {
        let mut input = BytesMut::new();
        write_frame(&mut input, body);
        self.bytes(input)
    }

    fn bytes(&mut self, mut input: BytesMut) -> Result<(), LinkError> {
        self.received(&mut input)
    }

    fn received(&mut self, input: &mut BytesMut) -> Result<(), LinkError> {
        let lock = Arc::new(Lock::default());
        lock.0.store(true, Ordering::SeqCst);
        let withdraw = Arc::clone(&lock) as Arc<dyn Withdraw>;
        let result = loop {
            match self.machine.received(self.now, input, &withdraw) {
                Ok(true) => {}
                Ok(false) => break Ok(()),
                Err(error) => break Err(error),
            }
        };
        lock.0.store(false, Ordering::SeqCst);
        self.deliver();
        result
    }

    fn answer(&mut self, xid: i32, code: Code, response: &Response) -> Result<(), LinkError> {
        self.frame(|out| {
            ReplyHeader { xid, zxid: 9, code }.write(out);
            response.write(out);
        })
    }

    fn event(&mut self, kind: EventKind, path: &str) {
        self.event_of(-1, kind, path);
    }

    /// Delivers an event with the number of its transaction, as ZooKeeper 3.9 and later send it.
    fn event_of(&mut self, zxid: i64, kind: EventKind, path: &str) {
        self.frame(|out| {
            ReplyHeader { xid: xid::NOTIFICATION, zxid, code: Code::OK }.write(out);
            WatchEvent { kind, path: path.to_owned() }.write(out);
        })
        .unwrap();
    }

    fn deliver(&mut self) {
        let mut deliveries = Deliveries::default();
        self.machine.swap_deliveries(&mut deliveries);
        deliveries.deliver();
    }

    fn lose_link(&mut self) {
        self.machine.disconnected(self.now);
        self.deliver();
    }
}

fn data() -> Response {
    Response::Data { data: Some(Bytes::from_static(b"x")), stat: Stat::default() }
}
