//! The protocol on virtual time, against a server that is written out frame by frame.

mod deadlines;

use super::super::{Fired, LinkError, Withdraw};
use super::*;
use crate::auth::Credentials;
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

/// Stands for the machine's lock: whatever calls back while bytes are taken in would wait for itself.
#[derive(Debug, Default)]
struct Lock(AtomicBool);

impl Withdraw for Lock {
    fn withdraw(&self, _id: u64) -> bool {
        false
    }

    fn unregister(&self, _id: u64, _path: &str, _kind: WatchKind) {
        assert!(!self.0.load(Ordering::SeqCst), "something was dropped under the machine's lock");
    }
}

/// A machine, its time, and what it has to say to the server.
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
            credentials,
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

    fn link_up(&mut self) -> ConnectRequest {
        self.machine.link_up(self.now, self.now + T / 3, &mut self.output);
        let frame = self.frames().pop().unwrap();
        ConnectRequest::decode(frame).unwrap()
    }

    fn attach(&mut self, session_id: i64, timeout: Duration) -> Result<ConnectRequest, LinkError> {
        let request = self.link_up();
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

    /// What the machine writes now.
    fn written(&mut self) -> Vec<RequestFrame> {
        self.machine.write(self.now, &mut self.output);
        self.frames().into_iter().map(|frame| RequestFrame::decode(frame).unwrap()).collect()
    }

    fn frame(&mut self, body: impl FnOnce(&mut BytesMut)) -> Result<(), LinkError> {
        let mut input = BytesMut::new();
        write_frame(&mut input, body);
        self.bytes(input)
    }

    fn bytes(&mut self, mut input: BytesMut) -> Result<(), LinkError> {
        let lock = Arc::new(Lock::default());
        lock.0.store(true, Ordering::SeqCst);
        let withdraw = Arc::clone(&lock) as Arc<dyn Withdraw>;
        let result = self.machine.received(self.now, &mut input, &withdraw);
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
        self.frame(|out| {
            ReplyHeader { xid: xid::NOTIFICATION, zxid: -1, code: Code::OK }.write(out);
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
        self.machine.link_down(self.now);
        self.deliver();
    }
}

fn data() -> Response {
    Response::Data { data: Some(Bytes::from_static(b"x")), stat: Stat::default() }
}

#[test]
fn a_new_session_carries_the_last_transaction_of_the_one_before() {
    let mut world = World::new();
    let request = world.link_up();
    assert_eq!((request.session_id, request.last_zxid_seen, request.timeout_ms), (0, 7, 12_000));
}

#[test]
fn re_attach_asks_for_the_timeout_first_granted_and_the_smallest_counts() {
    let mut world = World::new();
    world.attach(SESSION, T / 2).unwrap();
    world.lose_link();
    let request = world.attach(SESSION, T / 4).unwrap();
    assert_eq!(
        (request.session_id, request.timeout_ms, request.password.as_ref()),
        (SESSION, 6_000, b"secret".as_ref())
    );
    assert_eq!(world.lease.timeout(), T / 4);
    world.lose_link();
    assert_eq!(world.attach(SESSION, T).unwrap().timeout_ms, 6_000);
    assert_eq!(world.lease.timeout(), T / 4);
}

#[test]
fn requests_keep_the_order_of_their_calls_and_wait_for_the_link() {
    let mut world = World::new();
    let (_, _first) = world.get("/a", false);
    let (_, _second) = world.get("/b", false);
    assert!(world.written().is_empty());
    world.attach(SESSION, T).unwrap();
    let paths: Vec<_> = world.written().into_iter().map(|f| f.request.path().map(str::to_owned)).collect();
    assert_eq!(paths, [Some("/a".to_owned()), Some("/b".to_owned())]);
}

#[test]
fn a_request_withdrawn_before_it_was_written_is_never_sent() {
    let mut world = World::attached();
    let (first, _a) = world.get("/a", false);
    let (second, _b) = world.get("/b", false);
    assert!(world.machine.withdraw(first));
    assert_eq!(world.written().len(), 1);
    assert!(!world.machine.withdraw(second), "it was written");
}

#[test]
fn what_was_written_is_unknown_when_the_link_is_lost_and_the_rest_is_sent_on_the_next() {
    let mut world = World::attached();
    let (_, mut written) = world.get("/a", false);
    world.written();
    let (_, mut waiting) = world.get("/b", false);
    world.lose_link();
    assert!(matches!(written.try_recv(), Ok(Outcome::Unknown(Cause::LinkLost))));
    assert!(waiting.try_recv().is_err());
    world.attach(SESSION, T).unwrap();
    assert_eq!(world.written()[0].request.path(), Some("/b"));
}

#[test]
fn queues_are_bounded_but_not_for_cleanups() {
    let mut world = World::new();
    let waiting: Vec<_> = (0..3).map(|_| world.get("/a", false)).collect();
    assert_eq!(world.submit(Request::Ping).unwrap_err(), Cause::QueueFull);
    let delete = Request::Delete { path: "/a".to_owned(), version: -1 };
    assert!(world.machine.submit(delete, Lane::Cleanup, None).is_ok());
    drop(waiting);
}

#[test]
fn a_request_above_the_servers_limit_is_refused_and_one_at_the_limit_is_not() {
    let mut world = World::attached();
    let limit = 64 * 1024;
    let set =
        |size| Request::SetData { path: "/a".to_owned(), data: Some(vec![0; size].into()), version: -1 };
    let overhead = 8 + 4 + 2 + 4 + 4;
    assert!(world.submit(set(limit - overhead)).is_ok());
    let too_large = world.submit(set(limit - overhead + 1)).unwrap_err();
    assert_eq!(too_large, Cause::TooLarge { size: limit + 1, limit });
}

#[test]
fn an_acknowledged_write_renews_the_lease_from_its_send_time_and_reads_do_not() {
    let mut world = World::attached();
    let sent = world.now;
    let _read = world.get("/a", false);
    let _check = world.check();
    world.written();
    world.pass(Duration::from_secs(1));
    world.answer(1, Code::OK, &data()).unwrap();
    assert_eq!(world.lease.mark(world.now), None);
    world.answer(2, Code::OK, &Response::Multi(vec![])).unwrap();
    assert_eq!(world.lease.deadline(), sent + T * 2 / 3);
}

#[test]
fn after_a_long_pause_nothing_is_sent_before_the_session_is_attached_anew() {
    let longest = T - TICK - Duration::from_millis(100);
    for (pause, stale) in [(longest, false), (longest + Duration::from_millis(1), true)] {
        let mut world = World::attached();
        world.pass(pause);
        let _check = world.check();
        world.written();
        assert_eq!(world.machine.requests.in_flight.is_empty(), stale, "{pause:?}");
        let rings_at_once = world.machine.next_deadline().is_some_and(|at| at <= world.now);
        assert_eq!(rings_at_once, stale, "{pause:?}");
        let ticked = world.machine.tick(world.now);
        assert_eq!(matches!(ticked, Err(LinkError::Paused)), stale, "{pause:?}: {ticked:?}");
    }
}

#[test]
fn a_request_that_a_pause_held_up_is_sent_over_the_next_link() {
    let mut world = World::attached();
    world.pass(T);
    let check = world.check();
    world.written();
    world.machine.link_down(world.now);
    world.attach(SESSION, T).unwrap();
    let sent = world.now;
    world.written();
    world.answer(1, Code::OK, &Response::Multi(vec![])).unwrap();
    assert_eq!(world.lease.deadline(), sent + T * 2 / 3);
    drop(check);
}

#[test]
fn a_refusal_by_the_quorum_renews_the_lease_and_one_by_a_single_server_does_not() {
    for (code, renews) in [
        (Code::NO_NODE, true),
        (Code::BAD_VERSION, true),
        (Code::NO_AUTH, true),
        (Code::THROTTLED, false),
        (Code::UNIMPLEMENTED, false),
        (Code(-9_999), false),
    ] {
        let mut world = World::attached();
        let _check = world.check();
        world.written();
        world.answer(1, code, &Response::Empty).unwrap();
        assert_eq!(world.lease.mark(world.now).is_some(), renews, "{code:?}");
    }
}

#[test]
fn a_session_that_moved_costs_the_link_and_renews_nothing() {
    let mut world = World::attached();
    let _check = world.check();
    world.written();
    assert!(world.answer(1, Code::SESSION_MOVED, &Response::Empty).is_err());
    assert_eq!(world.lease.mark(world.now), None);
    assert_eq!(world.machine.ended(), None);
}

#[test]
fn something_is_sent_every_sixth_of_the_timeout() {
    let mut world = World::attached();
    assert_eq!(world.machine.next_deadline(), Some(world.now + T / 6));
    world.pass(T / 6);
    let ping = world.written();
    assert_eq!((ping.len(), ping[0].xid), (1, xid::PING));
    assert!(world.written().is_empty());
    // Anything else that is sent puts the next ping off.
    world.answer(xid::PING, Code::OK, &Response::Empty).unwrap();
    world.pass(T / 12);
    let _read = world.get("/a", false);
    world.written();
    world.answer(1, Code::OK, &data()).unwrap();
    assert_eq!(world.machine.next_deadline(), Some(world.now + T / 6));
}

#[test]
fn a_link_that_owes_a_reply_for_a_third_of_the_timeout_is_dropped() {
    let mut world = World::attached();
    world.pass(T / 6);
    world.written();
    world.pass(T / 3 - Duration::from_millis(1));
    assert!(world.machine.tick(world.now).is_ok());
    world.pass(Duration::from_millis(1));
    assert!(matches!(world.machine.tick(world.now), Err(LinkError::Silent)));
}

#[test]
fn bytes_that_trickle_in_do_not_keep_a_link_that_owes_a_reply_for_ever() {
    let mut world = World::attached();
    let _read = world.get("/a", false);
    world.written();
    for _ in 0..11 {
        world.pass(T / 12);
        world.bytes(BytesMut::from(&[0u8][..])).unwrap();
        assert!(world.machine.tick(world.now).is_ok());
        world.written();
    }
    world.pass(T / 12);
    assert!(matches!(world.machine.tick(world.now), Err(LinkError::Silent)));
}

#[test]
fn events_do_not_keep_a_link_that_owes_a_reply() {
    let mut world = World::attached();
    world.pass(T / 6);
    world.written();
    for _ in 0..3 {
        world.pass(T / 12);
        world.event(EventKind::Deleted, "/a");
        assert!(world.machine.tick(world.now).is_ok());
    }
    world.pass(T / 12);
    assert!(matches!(world.machine.tick(world.now), Err(LinkError::Silent)));
}

#[test]
fn a_handshake_has_a_time_of_its_own() {
    let mut world = World::new();
    world.link_up();
    assert_eq!(world.machine.next_deadline(), Some(world.now + T / 3));
    world.pass(T / 3);
    assert!(matches!(world.machine.tick(world.now), Err(LinkError::Handshake)));
}

#[test]
fn a_session_the_server_does_not_know_is_over() {
    let mut world = World::attached();
    let (_, mut waiting) = world.get("/a", false);
    world.lose_link();
    world.attach(0, Duration::ZERO).unwrap();
    assert_eq!(world.machine.ended(), Some(SessionEnd::Expired));
    assert!(matches!(waiting.try_recv(), Ok(Outcome::NotSent(Cause::Ended(SessionEnd::Expired)))));
    assert_eq!(world.submit(Request::Ping).unwrap_err(), Cause::Ended(SessionEnd::Expired));
}

#[test]
fn another_session_than_the_one_asked_for_is_a_loss() {
    let mut world = World::attached();
    world.lose_link();
    world.attach(SESSION + 1, T).unwrap();
    assert_eq!(world.machine.ended(), Some(SessionEnd::Expired));
}

#[test]
fn a_session_is_given_up_one_timeout_after_the_last_possible_lease() {
    let mut world = World::attached();
    let answered = world.now;
    world.lose_link();
    let lease = T * 2 / 3;
    assert_eq!(world.machine.next_deadline(), Some(answered + lease + T));
    world.pass(lease + T - Duration::from_millis(1));
    world.machine.tick(world.now).unwrap();
    assert_eq!(world.machine.ended(), None);
    world.pass(Duration::from_millis(1));
    world.machine.tick(world.now).unwrap();
    assert_eq!(world.machine.ended(), Some(SessionEnd::Abandoned));
}

#[test]
fn a_session_that_was_never_opened_is_not_given_up() {
    let mut world = World::new();
    world.pass(T * 100);
    world.machine.tick(world.now).unwrap();
    assert_eq!(world.machine.ended(), None);
}

#[test]
fn watches_are_set_again_before_anything_else_with_the_transaction_last_seen() {
    let mut world = World::attached();
    let (_, read) = world.get("/a", true);
    world.written();
    world.answer(1, Code::OK, &data()).unwrap();
    let Ok(Outcome::Reply(reply)) = { read }.try_recv() else { panic!("it was answered") };
    let mut watch = reply.watch.unwrap();
    world.lose_link();
    let (_, _waiting) = world.get("/b", false);
    world.attach(SESSION, T).unwrap();
    let written = world.written();
    let Request::SetWatches(watches) = &written[0].request else { panic!("watches come first") };
    assert_eq!((watches.relative_zxid, &watches.data[..]), (9, &["/a".to_owned()][..]));
    assert_eq!(written[1].request.path(), Some("/b"));
    // What happened meanwhile comes as an event.
    world.event(EventKind::DataChanged, "/a");
    assert_eq!(watch.fired.try_recv(), Ok(Fired::Event(EventKind::DataChanged)));
}

#[test]
fn a_read_of_a_missing_node_leaves_no_watch_but_exists_does() {
    let mut world = World::attached();
    let (_, mut get) = world.get("/a", true);
    let (_, mut exists) = world.submit(Request::Exists { path: "/a".to_owned(), watch: true }).unwrap();
    world.written();
    world.answer(1, Code::NO_NODE, &Response::Empty).unwrap();
    world.answer(2, Code::NO_NODE, &Response::Empty).unwrap();
    let watch = |outcome| match outcome {
        Ok(Outcome::Reply(reply)) => reply.watch.is_some(),
        _ => panic!("it was answered"),
    };
    assert!(!watch(get.try_recv()));
    assert!(watch(exists.try_recv()));
}

#[test]
fn a_watch_nobody_waits_for_is_removed_unless_a_read_on_the_way_wants_it() {
    let mut world = World::attached();
    let (id, _fired) = world.machine.watches.register("/a", WatchKind::Data);
    let (_, _read) = world.get("/a", true);
    world.machine.unregister(id, "/a", WatchKind::Data);
    assert_eq!(world.written().len(), 1);
    let (id, _fired) = world.machine.watches.register("/b", WatchKind::Child);
    world.machine.unregister(id, "/b", WatchKind::Child);
    assert_eq!(world.written()[0].request.op(), OpCode::RemoveWatches);
}

#[test]
fn draining_ends_calls_and_watches_and_closing_ends_the_session() {
    let mut world = World::attached();
    let (_, mut written) = world.get("/a", false);
    world.written();
    let (_, mut waiting) = world.get("/b", false);
    let (_, mut watch) = world.machine.watches.register("/a", WatchKind::Data);
    world.machine.drain();
    world.deliver();
    let closed = Cause::Ended(SessionEnd::Closed);
    assert!(matches!(written.try_recv(), Ok(Outcome::Unknown(cause)) if cause == closed));
    assert!(matches!(waiting.try_recv(), Ok(Outcome::NotSent(cause)) if cause == closed));
    assert_eq!(watch.try_recv(), Ok(Fired::Ended(SessionEnd::Closed)));
    assert_eq!(world.submit(Request::Ping).unwrap_err(), closed);

    let delete = Request::Delete { path: "/a".to_owned(), version: -1 };
    let (_, mut cleanup) = world.machine.submit(delete, Lane::Cleanup, None).unwrap();
    world.machine.close();
    let ops: Vec<_> = world.written().iter().map(|frame| frame.request.op()).collect();
    assert_eq!(ops, [OpCode::Delete, OpCode::CloseSession]);
    world.answer(1, Code::OK, &data()).unwrap();
    world.answer(2, Code::OK, &Response::Empty).unwrap();
    assert!(matches!(cleanup.try_recv(), Ok(Outcome::Reply(_))));
    world.answer(3, Code::OK, &Response::Empty).unwrap();
    assert_eq!(world.machine.ended(), Some(SessionEnd::Closed));
}

#[test]
fn whatever_a_server_sends_is_an_error_and_never_a_panic() {
    let reply = |xid: i32, code: i32, body: &[u8]| {
        let mut out = BytesMut::new();
        write_frame(&mut out, |out| {
            ReplyHeader { xid, zxid: 9, code: Code(code) }.write(out);
            out.extend_from_slice(body);
        });
        out
    };
    let raw = |bytes: &[u8]| BytesMut::from(bytes);
    for (what, bytes) in [
        ("length -1", raw(&[0xff; 4])),
        ("length 2^31 - 1", raw(&[0x7f, 0xff, 0xff, 0xff])),
        ("length above the limit", raw(&[0, 0, 4, 1])),
        ("empty frame", raw(&[0, 0, 0, 0])),
        ("frame of one byte", raw(&[0, 0, 0, 1, 0])),
        ("unknown number", reply(77, 0, &[])),
        ("number 0", reply(0, 0, &[])),
        ("negative number", reply(-77, 0, &[])),
        ("short stat", reply(1, 0, &[0, 0, 0, 1, b'x', 0, 0])),
        ("negative length", reply(1, 0, &[0x80, 0, 0, 0])),
        ("huge length", reply(1, 0, &[0x7f, 0xff, 0xff, 0xff])),
        ("event of unknown type", reply(-1, 0, &[0, 0, 0, 9, 0, 0, 0, 3, 0, 0, 0, 0])),
        ("event without utf-8", reply(-1, 0, &[0, 0, 0, 1, 0, 0, 0, 3, 0, 0, 0, 1, 0xff])),
        ("four-letter word's reply", raw(b"This ZooKeeper instance is not currently serving requests\n")),
    ] {
        let mut world = World::attached();
        let (_, _read) = world.get("/a", false);
        world.written();
        assert!(world.bytes(bytes).is_err(), "{what}");
    }
    // These are odd, and harmless.
    let mut world = World::attached();
    world.bytes(reply(xid::PING, 0, &[])).unwrap();
    world.event(EventKind::Deleted, "");
    for truncated in 1..20 {
        let (mut world, answer) = (World::attached(), reply(1, 0, &[0; 72]));
        world.bytes(BytesMut::from(&answer[..truncated])).unwrap();
    }
}

#[test]
fn a_connect_response_that_makes_no_sense_is_an_error_or_a_loss() {
    for (session_id, timeout_ms) in [(0, 1_000), (1, 0), (1, -1), (0, 0)] {
        let mut world = World::new();
        world.link_up();
        let response = ConnectResponse { timeout_ms, session_id, password: Bytes::new(), read_only: None };
        assert!(world.frame(|out| response.write(out)).is_err(), "a new session was refused");
    }
    let mut world = World::new();
    world.link_up();
    let read_only =
        ConnectResponse { timeout_ms: 1_000, session_id: 1, password: Bytes::new(), read_only: Some(true) };
    assert!(world.frame(|out| read_only.write(out)).is_err());
}

#[test]
fn a_reply_nobody_waits_for_leaves_no_watch_to_be_dropped_under_the_lock() {
    let mut world = World::attached();
    let (_, _read) = world.get("/a", true);
    world.written();
    world.machine.drain();
    world.answer(1, Code::OK, &data()).unwrap();
}

#[test]
fn a_multi_that_says_that_the_session_is_gone_ends_it_and_renews_nothing() {
    let mut world = World::attached();
    let mut check = world.check();
    world.written();
    let failed = Response::Multi(vec![MultiResult::Failed(Code::SESSION_EXPIRED)]);
    world.answer(1, Code::OK, &failed).unwrap();
    assert_eq!(world.lease.mark(world.now), None);
    assert_eq!(world.machine.ended(), Some(SessionEnd::Expired));
    assert!(
        matches!(check.try_recv(), Ok(Outcome::Reply(reply)) if reply.result == Err(Code::SESSION_EXPIRED))
    );
}

#[test]
fn watches_are_set_again_as_of_the_first_gap_until_all_of_them_are() {
    let mut world = World::attached();
    let long = |name: &str| format!("/{name}{}", "x".repeat(40 * 1024));
    let (_, _first) = world.machine.watches.register(&long("a"), WatchKind::Data);
    let (_, _second) = world.machine.watches.register(&long("b"), WatchKind::Data);
    let since = |world: &mut World| {
        let written = world.written();
        written
            .iter()
            .map(|frame| match &frame.request {
                Request::SetWatches(watches) => watches.relative_zxid,
                other => panic!("{other:?}"),
            })
            .collect::<Vec<_>>()
    };
    world.lose_link();
    world.attach(SESSION, T).unwrap();
    assert_eq!(since(&mut world), [7, 7]);
    // The first answer says that the server is at transaction 9; the link is lost before the second.
    world.answer(xid::SET_WATCHES, Code::OK, &Response::Empty).unwrap();
    world.lose_link();
    world.attach(SESSION, T).unwrap();
    assert_eq!(since(&mut world), [7, 7], "changes up to 9 were not seen for the second");
    for _ in 0..2 {
        world.answer(xid::SET_WATCHES, Code::OK, &Response::Empty).unwrap();
    }
    world.lose_link();
    world.attach(SESSION, T).unwrap();
    assert_eq!(since(&mut world), [9, 9]);
}

#[test]
fn watches_that_cannot_be_set_again_cost_the_link() {
    let mut world = World::attached();
    let (_, _watch) = world.machine.watches.register("/a", WatchKind::Data);
    world.lose_link();
    world.attach(SESSION, T).unwrap();
    world.written();
    assert!(world.answer(xid::SET_WATCHES, Code::THROTTLED, &Response::Empty).is_err());
}

#[test]
fn a_delete_of_our_own_node_keeps_its_place_over_a_lost_link() {
    let mut world = World::attached();
    let delete = Request::Delete { path: "/ours".to_owned(), version: -1 };
    let (_, mut deleted) = world.machine.submit(delete, Lane::Cleanup, None).unwrap();
    world.written();
    world.lose_link();
    assert!(deleted.try_recv().is_err());
    let (_, _later) = world.get("/line", false);
    world.attach(SESSION, T).unwrap();
    let ops: Vec<_> = world.written().iter().map(|frame| frame.request.op()).collect();
    assert_eq!(ops, [OpCode::Delete, OpCode::GetData]);
}

#[test]
fn a_process_that_was_frozen_gets_the_time_to_re_attach() {
    let mut world = World::attached();
    world.pass(T * 10);
    world.lose_link();
    world.machine.tick(world.now).unwrap();
    assert_eq!(world.machine.ended(), None);
    world.pass(T / 3);
    world.machine.tick(world.now).unwrap();
    assert_eq!(world.machine.ended(), Some(SessionEnd::Abandoned));
}

fn with_two_credentials() -> World {
    let credentials = |user| Credentials::digest(user, &"secret".into());
    World::with(vec![credentials("first"), credentials("second")])
}

fn is_up(world: &World) -> bool {
    world.machine.link_state().up
}

#[test]
fn credentials_go_first_on_every_link_and_nothing_follows_before_they_are_accepted() {
    let mut world = with_two_credentials();
    let (_, _read) = world.get("/a", false);
    let (_, _watch) = world.machine.watches.register("/w", WatchKind::Data);
    for _ in 0..2 {
        world.attach(SESSION, T).unwrap();
        let sent: Vec<_> = world.written().into_iter().map(|frame| (frame.xid, frame.request)).collect();
        let auth = |user: &str| {
            let credentials = Bytes::from(format!("{user}:secret"));
            (xid::AUTH, Request::Auth { scheme: "digest".to_owned(), credentials })
        };
        assert_eq!(sent, [auth("first"), auth("second")]);
        world.answer(xid::AUTH, Code::OK, &Response::Empty).unwrap();
        assert!(world.written().is_empty() && !is_up(&world), "one is still open");
        world.answer(xid::AUTH, Code::OK, &Response::Empty).unwrap();
        assert!(is_up(&world));
        assert_eq!(world.written()[0].request.op(), OpCode::SetWatches);
        world.lose_link();
    }
}

#[test]
fn a_reply_to_credentials_may_come_between_others() {
    let mut world = World::attached();
    let (_, mut read) = world.get("/a", false);
    world.written();
    world.answer(xid::AUTH, Code::OK, &Response::Empty).unwrap();
    world.answer(1, Code::OK, &data()).unwrap();
    assert!(matches!(read.try_recv(), Ok(Outcome::Reply(_))));
}

#[test]
fn refused_credentials_end_the_session_and_nothing_of_it_was_sent() {
    let mut world = with_two_credentials();
    let (_, mut waiting) = world.get("/a", false);
    world.attach(SESSION, T).unwrap();
    world.written();
    world.answer(xid::AUTH, Code::AUTH_FAILED, &Response::Empty).unwrap();
    assert_eq!(world.machine.ended(), Some(SessionEnd::AuthFailed));
    let refused = Cause::Ended(SessionEnd::AuthFailed);
    assert!(matches!(waiting.try_recv(), Ok(Outcome::NotSent(cause)) if cause == refused));
    assert_eq!(world.submit(Request::Ping).unwrap_err(), refused);
}

#[test]
fn a_server_that_wants_credentials_ends_the_session() {
    let mut world = World::attached();
    let (_, mut read) = world.get("/a", false);
    world.written();
    world.answer(1, Code::SESSION_CLOSED_REQUIRE_SASL_AUTH, &Response::Empty).unwrap();
    assert!(matches!(read.try_recv(), Ok(Outcome::Reply(_))));
    assert_eq!(world.machine.ended(), Some(SessionEnd::AuthFailed));
}

#[test]
fn credentials_that_are_not_answered_cost_the_link_in_the_time_of_a_handshake() {
    let mut world = with_two_credentials();
    world.attach(SESSION, T).unwrap();
    world.written();
    assert_eq!(world.machine.next_deadline(), Some(world.now + T / 3));
    world.pass(T / 3);
    assert!(matches!(world.machine.tick(world.now), Err(LinkError::Handshake)));
}

#[test]
fn nothing_in_the_machine_prints_a_password() {
    let mut world = with_two_credentials();
    world.attach(SESSION, T).unwrap();
    let printed = format!("{:?} {:#?}", world.machine, world.machine);
    for secret in ["secret", "[115, 101, 99", "73656372"] {
        assert!(!printed.contains(secret), "{printed}");
    }
}
