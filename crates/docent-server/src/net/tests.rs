use super::buffers::{Incoming, Outgoing};
use super::entrance::Entrance;
use super::hub::{Hub, Progress};
use super::link::{Place, run};
use super::links::SMALL;
use super::listener::Listener;
use super::members::LEADER;
use crate::config::Config;
use crate::state::{Origin, State};
use crate::time::Clock;
use bytes::{BufMut, Bytes, BytesMut};
use docent_proto::{
    Acl, ConnectRequest, Create, CreateMode, MultiOp, OpCode, Record, Request, RequestFrame, write_frame,
};
use proptest::collection::vec;
use proptest::prelude::{Strategy, any, prop_oneof};
use proptest::proptest;
use proptest::sample::select;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};
use tokio_util::task::TaskTracker;

const HANDSHAKE: Duration = Duration::from_secs(10);

fn hub() -> Arc<Hub> {
    let (config, clock) = (Config::default(), Clock::new(|| Duration::ZERO));
    let state = State::new(config.clone(), Origin::at(Duration::ZERO));
    Arc::new(Hub::new(&config, clock, state))
}

fn entered(hub: &Arc<Hub>) -> Place {
    Place::enter(hub, ([127, 0, 0, 1], 1).into(), LEADER).expect("there is room for some links")
}

fn connected() -> Place {
    connected_to(&hub())
}

fn connected_to(hub: &Arc<Hub>) -> Place {
    let place = entered(hub);
    let mut input = BytesMut::new();
    let request = ConnectRequest { read_only: None, ..ConnectRequest::new_session(10_000) };
    write_frame(&mut input, |out| request.write(out));
    assert_eq!(receive(&place, input), Progress::Hungry);
    place
}

fn receive(place: &Place, input: BytesMut) -> Progress {
    place.hub.receive(place.id, &mut input.into(), &Outgoing::default())
}

/// Encodes requests in one buffer.
fn requests(requests: impl IntoIterator<Item = Request>) -> BytesMut {
    let mut out = BytesMut::new();
    for (xid, request) in (1..).zip(requests) {
        RequestFrame { xid, request }.encode(&mut out);
    }
    out
}

fn set_data(length: usize) -> Request {
    Request::SetData { path: "/".into(), data: Some(vec![0; length].into()), version: -1 }
}

fn get_data() -> Request {
    Request::GetData { path: "/".into(), watch: false }
}

fn create(path: String) -> MultiOp {
    MultiOp::Create(Create::new(path, Bytes::new(), Acl::open(), CreateMode::Persistent, 0))
}

/// Generates an operation that does not end the session.
fn session_keeping_op() -> impl Strategy<Value = OpCode> {
    select(OpCode::ALL).prop_filter("the session ends", |op| *op != OpCode::CloseSession)
}

/// Generates a body from pieces of requests, so that some bodies are valid.
fn body() -> impl Strategy<Value = Vec<u8>> {
    let number = prop_oneof![-2_i32..40, any::<i32>()].prop_map(|number| number.to_be_bytes().to_vec());
    let path = select(vec!["/", "/a", "/a/b", "", "/\0", "/zookeeper", "world", "anyone"]).prop_map(|path| {
        let mut out = BytesMut::new();
        out.put_u32(u32::try_from(path.len()).unwrap_or(0));
        out.put_slice(path.as_bytes());
        out.to_vec()
    });
    let noise = vec(any::<u8>(), 0..6);
    vec(prop_oneof![3 => path, 3 => number, 1 => noise], 0..12).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn no_bytes_before_the_handshake_panic(bytes in vec(any::<u8>(), 0..200)) {
        receive(&entered(&hub()), BytesMut::from(&bytes[..]));
    }

    #[test]
    fn no_bytes_after_the_handshake_panic(bytes in vec(any::<u8>(), 0..200)) {
        let place = connected();
        receive(&place, BytesMut::from(&bytes[..]));
    }

    #[test]
    fn no_sequence_of_half_right_requests_panics(requests in vec((session_keeping_op(), body()), 1..20)) {
        let place = connected();
        for (op, body) in requests {
            let mut input = BytesMut::new();
            write_frame(&mut input, |out| {
                out.put_i32(1);
                out.put_i32(op as i32);
                out.put_slice(&body);
            });
            receive(&place, input);
        }
    }
}

#[test]
fn requests_wait_while_their_client_has_not_read_enough_of_the_answers() {
    const DATA: usize = 100_000;
    let place = connected();
    let (hub, id) = (&place.hub, place.id);
    let all = [set_data(DATA)].into_iter().chain((0..98).map(|_| get_data()));
    let mut input = Incoming::from(requests(all));
    let mut rounds = 0;
    while hub.receive(id, &mut input, &Outgoing::default()) != Progress::Hungry {
        assert!(hub.take_output(id).len() < 4 * DATA);
        rounds += 1;
    }
    assert!(rounds > 20 && input.bytes.is_empty(), "{rounds} rounds");
}

#[test]
fn long_requests_do_not_starve_other_links() {
    let place = connected();
    let (hub, id) = (&place.hub, place.id);
    let below = (0..10_000).map(|n| create(format!("/a/{n}")));
    let multi = Request::Multi([create("/a".into())].into_iter().chain(below).collect());
    assert_eq!(receive(&place, requests([multi])), Progress::Busy);
    assert_eq!(receive(&place, BytesMut::new()), Progress::Hungry);
    hub.take_output(id);
    let count = || Request::GetAllChildrenNumber { path: "/a".into() };
    let mut input = Incoming::from(requests((0..20).map(|_| count())));
    let mut turns = 0;
    while hub.receive(id, &mut input, &Outgoing::default()) == Progress::Busy {
        turns += 1;
    }
    assert_eq!(turns, 20);
    // Requests that arrive one by one count as well.
    let busy = (0..1_000).filter(|_| receive(&place, requests([Request::Ping])) == Progress::Busy).count();
    assert!((4..20).contains(&busy), "{busy} turns");
}

/// Runs a link over a pipe in memory.
fn over_pipe(place: Place, room: usize) -> DuplexStream {
    let (near, far) = duplex(room);
    tokio::spawn(run(far, place, HANDSHAKE));
    near
}

#[tokio::test]
async fn a_fast_client_does_not_starve_other_links() {
    const PINGS: usize = 1_000;
    let hub = hub();
    let (greedy, other) = (connected_to(&hub), connected_to(&hub));
    for place in [&greedy, &other] {
        hub.take_output(place.id);
    }
    let (mut greedy, mut other) = (over_pipe(greedy, 1 << 20), over_pipe(other, 1 << 20));
    greedy.write_all(&requests((0..PINGS).map(|_| Request::Ping))).await.expect("there is room");
    other.write_all(&requests([Request::Ping])).await.expect("there is room");
    const REPLY: usize = 20;
    other.read_exact(&mut [0; REPLY]).await.expect("the other client's ping is answered");
    drop(other);
    let mut answered = vec![0; REPLY * PINGS];
    let count = greedy.read(&mut answered).await.expect("some are answered") / REPLY;
    assert!((1..PINGS / 2).contains(&count), "{count} pings of the greedy client were answered first");
    greedy.read_exact(&mut answered[..REPLY * (PINGS - count)]).await.expect("all are answered");
}

#[tokio::test]
async fn a_reply_counts_as_a_whole_until_its_buffer_is_freed() {
    const DATA: usize = 1_000_000;
    let place = connected();
    let hub = Arc::clone(&place.hub);
    assert_eq!(receive(&place, requests([set_data(DATA)])), Progress::Busy);
    hub.take_output(place.id);
    let mut client = over_pipe(place, 1_000);
    client.write_all(&requests([get_data()])).await.expect("there is room");
    let mut unread = DATA;
    let mut part = vec![0; 1_000];
    while unread > 2_000 {
        client.read_exact(&mut part).await.expect("the reply continues");
        unread -= part.len();
        client.write_all(&requests([Request::Ping])).await.expect("there is room");
        // Lets the link's task run until it waits again.
        for _ in 0..5 {
            tokio::task::yield_now().await;
        }
        let waiting = hub.lock().links.waiting();
        let least = if unread > DATA / 2 + 10_000 { DATA } else { unread.saturating_sub(2_000) };
        let least = least.saturating_sub(SMALL);
        assert!((least..DATA + 200_000).contains(&waiting), "{waiting} bytes queued, {unread} unread");
    }
}

/// Listener of a process that has too many open files.
struct Exhausted;

impl Listener for Exhausted {
    type Io = DuplexStream;

    async fn accept(&mut self) -> io::Result<(DuplexStream, SocketAddr)> {
        Err(io::Error::from_raw_os_error(24))
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        Ok(([127, 0, 0, 1], 2181).into())
    }
}

#[tokio::test(start_paused = true)]
async fn links_without_a_session_are_closed_to_free_files() {
    let hub = hub();
    let (with_session, silent, later) = (connected_to(&hub), entered(&hub), entered(&hub));
    let entrance =
        Entrance { hub: Arc::clone(&hub), member: LEADER, links: TaskTracker::new(), handshake: HANDSHAKE };
    for open in [[true, false, true], [true, false, false], [true, false, false]] {
        entrance.admit(&mut Exhausted).await;
        assert_eq!([&with_session, &silent, &later].map(|place| hub.is_open(place.id)), open);
    }
}
