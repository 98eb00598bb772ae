//! Clients that all read and write at the same time, as much as a real server permits. None of them loses its
//! link, however slowly it reads or writes.

use crate::support::{Peer, bounded, fresh};
use crate::{MIB, Memory, TURN, allow_many_sockets, bystander, resident};
use bytes::{Bytes, BytesMut};
use docent_proto::{Code, CreateMode, Request, RequestFrame};
use docent_server::{Limits, Server};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::io::AsyncReadExt;
use tokio::net::TcpSocket;
use tokio::runtime::Runtime;
use tokio::sync::Barrier;
use tokio::task::JoinSet;
use tokio::time::sleep;

/// Size of the node that is read and written, close to the maximum size of a request.
const LARGE: usize = 1_000_000;

/// Maximum bytes queued in all links, a fraction of what the clients request.
const QUEUED: usize = 64 * MIB;

const LARGE_PATH: &str = "/large";

/// Opens a client whose side of the link buffers few bytes, so that an unread reply is queued in the server.
async fn narrow(address: SocketAddr) -> Peer {
    let socket = TcpSocket::new_v4().expect("a socket can be opened");
    socket.set_recv_buffer_size(64 << 10).expect("the size is valid");
    socket.set_send_buffer_size(64 << 10).expect("the size is valid");
    let mut peer = Peer::over(socket.connect(address).await.expect("the server listens"));
    assert!(peer.attach(&fresh(40_000)).await, "a session is granted");
    peer
}

fn read() -> Request {
    Request::GetData { path: LARGE_PATH.into(), watch: false }
}

fn write() -> Bytes {
    let data = Some(vec![7; LARGE].into());
    let request = Request::SetData { path: LARGE_PATH.into(), data, version: -1 };
    let mut out = BytesMut::new();
    RequestFrame { xid: 1, request }.encode(&mut out);
    out.freeze()
}

/// Reads and discards a reply, up to `bytes` at a time, with a pause after each part.
async fn drop_reply(peer: &mut Peer, bytes: usize, pause: Duration) {
    let mut length = [0; 4];
    bounded(peer.stream.read_exact(&mut length)).await.expect("the link stays open");
    let mut unread =
        usize::try_from(i32::from_be_bytes(length)).expect("the length of a reply is not negative");
    assert!(unread > LARGE, "a reply of {unread} bytes is too small");
    let mut part = vec![0; bytes];
    while unread > 0 {
        let most = unread.min(bytes);
        let count = bounded(peer.stream.read(&mut part[..most])).await.expect("the link stays open");
        assert!(count > 0, "the link stays open");
        unread -= count;
        sleep(pause).await;
    }
}

async fn assert_is_read(peer: &mut Peer) {
    drop_reply(peer, 64 << 10, Duration::ZERO).await;
}

/// Runs a client that first reads nothing for two seconds, and then reads slowly. It sends pings meanwhile.
async fn slow_reader(address: SocketAddr) {
    let mut peer = narrow(address).await;
    peer.send(read()).await;
    for _ in 0..4 {
        sleep(Duration::from_millis(500)).await;
        peer.send(Request::Ping).await;
    }
    drop_reply(&mut peer, 32 << 10, Duration::from_millis(20)).await;
    for _ in 0..4 {
        assert_eq!(peer.reply().await.expect("the link stays open").0.code, Code::OK);
    }
}

async fn quick_reader(address: SocketAddr) {
    let mut peer = narrow(address).await;
    for _ in 0..3 {
        peer.send(read()).await;
        assert_is_read(&mut peer).await;
    }
}

/// Runs clients of a server on separate threads, beside a client that sends small requests.
async fn beside_a_bystander<F>(
    name: &str,
    clients: impl IntoIterator<Item = F>,
    server: Server,
    limits: Limits,
) where
    F: Future<Output = ()> + Send + 'static,
{
    let mut peer = Peer::open(&server).await;
    peer.create("/bystander", CreateMode::Persistent).await.expect("the node can be created");
    peer.create(LARGE_PATH, CreateMode::Persistent).await.expect("the node can be created");
    peer.set_data(LARGE_PATH, &vec![7; LARGE]).await.expect("the data fits");
    let stop = Arc::new(AtomicBool::new(false));
    let work = tokio::spawn(bystander(peer, Arc::clone(&stop)));
    let (before, memory) = (resident(), Memory::watch());
    let threads = Runtime::new().expect("a runtime can be started");
    let mut all = JoinSet::new();
    for client in clients {
        all.spawn_on(client, threads.handle());
    }
    all.join_all().await;
    threads.shutdown_background();
    stop.store(true, Ordering::Relaxed);
    let mut times = work.await.expect("the bystander is served to the end");
    times.sort_unstable();
    let p99 = times[times.len() * 99 / 100];
    let grown = memory.most.load(Ordering::Relaxed).saturating_sub(before);
    eprintln!("{name}: p99 {p99:?} of {}, {} MiB more", times.len(), grown >> 20);
    assert!(p99 < Duration::from_millis(500), "{name}: p99 of a bystander is {p99:?}");
    assert!(grown < limits.memory(), "{name}: {} MiB more than before", grown >> 20);
    server.stop().await;
}

/// Starts a server with room for a fraction of what the clients request.
async fn server() -> (Server, Limits) {
    allow_many_sockets();
    let limits = crate::limits().connections(1_000).queued_bytes(QUEUED);
    let server = Server::builder().limits(limits.clone()).start().await.expect("there is a free port");
    (server, limits)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_eight_hundred_clients_that_read_a_megabyte_none_loses_its_link() {
    const CLIENTS: usize = 800;
    let _turn = TURN.lock().await;
    let (server, limits) = server().await;
    let (address, begin) = (server.local_addr(), Arc::new(Barrier::new(CLIENTS)));
    let client = |_| {
        let begin = Arc::clone(&begin);
        async move {
            let mut peer = narrow(address).await;
            peer.send(read()).await;
            // All clients have sent their request before one of them reads.
            begin.wait().await;
            assert_is_read(&mut peer).await;
        }
    };
    beside_a_bystander("eight hundred readers", (0..CLIENTS).map(client), server, limits).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn six_hundred_clients_that_read_slowly_cost_no_client_its_link() {
    let _turn = TURN.lock().await;
    let (server, limits) = server().await;
    let address = server.local_addr();
    let client = |number| async move {
        if number % 7 == 0 { quick_reader(address).await } else { slow_reader(address).await }
    };
    beside_a_bystander("six hundred slow readers", (0..700).map(client), server, limits).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_two_hundred_clients_that_write_a_megabyte_slowly_none_loses_its_link() {
    const CLIENTS: usize = 200;
    let _turn = TURN.lock().await;
    let (server, limits) = server().await;
    let (address, begin) = (server.local_addr(), Arc::new(Barrier::new(CLIENTS)));
    let request = write();
    let client = |_| {
        let (begin, request) = (Arc::clone(&begin), request.clone());
        async move {
            let mut peer = narrow(address).await;
            begin.wait().await;
            for part in request.chunks(64 << 10) {
                peer.send_bytes(part).await;
                sleep(Duration::from_millis(50)).await;
            }
            assert_eq!(peer.reply().await.expect("the link stays open").0.code, Code::OK);
        }
    };
    beside_a_bystander("two hundred slow writers", (0..CLIENTS).map(client), server, limits).await;
}
