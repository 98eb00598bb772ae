//! Clients that request as much as they can get, one kind of attack after the other, beside a client that
//! works. The working client never waits long, and the process needs no more memory than [`Limits::memory`]
//! returns.

#[path = "../server/support/mod.rs"]
#[expect(dead_code, reason = "an attacker uses only a part of it")]
mod support;

mod readers;

use bytes::{BufMut, Bytes, BytesMut};
use docent_proto::{Acl, CreateMode, MultiOp, OpCode, Permissions, Request, WatchMode, Watches};
use docent_server::{Limits, Server};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::fs;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use support::{Peer, fresh, node, try_four_letter_word};
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;
use tokio::runtime::Runtime;
use tokio::sync::Mutex;
use tokio::task::JoinSet;

const MIB: usize = 1 << 20;

/// Number of open files that the process requests, more than any test in this file needs.
const OPEN_FILES: u64 = 4_096;

/// Held by one test at a time, because each test measures the memory of the whole process.
static TURN: Mutex<()> = Mutex::const_new(());

fn limits() -> Limits {
    Limits::default()
        .reply_bytes(8 * MIB)
        .connections(400)
        .sessions(2_000)
        .nodes(20_000)
        .total_bytes(24 * MIB)
        .watches_per_connection(20_000)
        .watch_bytes_per_connection(16 * MIB)
        .watch_bytes(48 * MIB)
        .queued_bytes_per_connection(16 * MIB)
        .queued_bytes(48 * MIB)
        .events_per_transaction(50_000)
        .held_bytes(16 * MIB)
        .past_bytes(16 * MIB)
        .journal_bytes(16 * MIB)
        .handshake(Duration::from_secs(2))
}

/// Returns the bytes of memory that the process occupies now.
fn resident() -> u64 {
    let status =
        fs::read_to_string("/proc/self/status").expect("the system has a status file for each process");
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))
        .expect("the status contains the resident memory");
    let kib = line.trim().trim_end_matches(" kB").parse::<u64>().expect("the resident memory is a number");
    kib << 10
}

/// Raises the limit on open files, so that the process can have a socket for each client and for each
/// connection of the server. The default limit is often 1,024.
fn allow_many_sockets() {
    let allowed = getrlimit(Resource::Nofile);
    let current = Some(allowed.maximum.map_or(OPEN_FILES, |most| most.min(OPEN_FILES)));
    setrlimit(Resource::Nofile, Rlimit { current, ..allowed })
        .expect("the new limit is within the system's maximum");
}

/// Measures the memory of the process until it is dropped, and keeps the maximum.
struct Memory {
    most: Arc<AtomicU64>,
    ended: Arc<AtomicBool>,
}

impl Memory {
    fn watch() -> Self {
        let (most, ended) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
        let (seen, end) = (Arc::clone(&most), Arc::clone(&ended));
        thread::spawn(move || {
            while !end.load(Ordering::Relaxed) {
                seen.fetch_max(resident(), Ordering::Relaxed);
                thread::sleep(Duration::from_millis(2));
            }
        });
        Self { most, ended }
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Relaxed);
    }
}

/// Runs a client that reads, writes and pings until `stop` is set. Returns how long each answer took.
async fn bystander(mut peer: Peer, stop: Arc<AtomicBool>) -> Vec<Duration> {
    let mut times = Vec::new();
    while !stop.load(Ordering::Relaxed) || times.len() < 300 {
        for request in [
            Request::SetData { path: "/bystander".into(), data: Some("x".into()), version: -1 },
            Request::GetData { path: "/bystander".into(), watch: false },
            Request::Ping,
        ] {
            let began = Instant::now();
            peer.call(request).await.expect("the bystander is served");
            times.push(began.elapsed());
        }
    }
    times
}

/// Runs `count` attackers concurrently, each with its number.
async fn crowd<F>(count: usize, attack: impl Fn(usize) -> F)
where
    F: Future<Output = ()> + Send + 'static,
{
    let mut crowd = JoinSet::new();
    for number in 0..count {
        crowd.spawn(tokio::time::timeout(Duration::from_secs(2), attack(number)));
    }
    // An attacker that is stuck for long has been stopped by the server.
    crowd.join_all().await;
}

/// Opens a link without sending anything; `None` if the link is refused.
async fn dial(address: &str) -> Option<Peer> {
    TcpStream::connect(address).await.ok().map(Peer::over)
}

/// Opens a client that tolerates being refused or closed.
async fn attacker(address: &str) -> Option<Peer> {
    let mut peer = dial(address).await?;
    peer.attach(&fresh(10_000)).await.then_some(peer)
}

fn frame(op: i32, body: &[u8]) -> BytesMut {
    let mut out = BytesMut::new();
    docent_proto::write_frame(&mut out, |out| {
        out.put_i32(1);
        out.put_i32(op);
        out.put_slice(body);
    });
    out
}

/// Runs one kind of attack beside a bystander, on a new server.
async fn besiege<F>(name: &str, attackers: &Runtime, attack: impl FnOnce(String) -> F)
where
    F: Future<Output = ()> + Send + 'static,
{
    let server = Server::builder().limits(limits()).start().await.expect("there is a free port");
    let mut peer = Peer::open(&server).await;
    peer.create("/bystander", CreateMode::Persistent).await.expect("the node can be created");
    let stop = Arc::new(AtomicBool::new(false));
    let work = tokio::spawn(bystander(peer, Arc::clone(&stop)));
    let before = resident();
    let memory = Memory::watch();
    attackers.spawn(attack(server.connect_string().to_owned())).await.expect("attackers do not panic");
    stop.store(true, Ordering::Relaxed);
    let mut times = work.await.expect("the bystander is served to the end");
    times.sort_unstable();
    let p99 = times[times.len() * 99 / 100];
    let grown = memory.most.load(Ordering::Relaxed).saturating_sub(before);
    eprintln!("{name}: p99 {p99:?} of {}, {} MiB more", times.len(), grown >> 20);
    assert!(p99 < Duration::from_millis(500), "{name}: p99 of a bystander is {p99:?}");
    assert!(grown < limits().memory(), "{name}: {} MiB more than before", grown >> 20);
    server.stop().await;
}

async fn nodes(address: String) {
    crowd(8, |number| {
        let address = address.clone();
        async move {
            let Some(mut peer) = attacker(&address).await else { return };
            for n in 0..20_000 {
                let mut create = node(&format!("/{number}-{n}"), CreateMode::Ephemeral);
                create.data = Some(Bytes::from_static(&[0; 10_000]));
                let _ = peer.call(Request::Create(create)).await;
            }
        }
    })
    .await;
}

async fn access_control_lists(address: String) {
    let entry =
        |n| Acl { permissions: Permissions::ALL, scheme: "ip".into(), id: format!("10.0.0.0/{n}").into() };
    let list: Arc<[Acl]> = (0..30).map(entry).collect::<Vec<_>>().into();
    let long: Arc<[Acl]> =
        (0..20_000).map(|n| Acl { scheme: "x".into(), ..entry(n) }).collect::<Vec<_>>().into();
    crowd(8, |number| {
        let (address, list, long) = (address.clone(), Arc::clone(&list), Arc::clone(&long));
        async move {
            let Some(mut peer) = attacker(&address).await else { return };
            for n in 0..20_000 {
                let acl = if n % 100 == 0 { Arc::clone(&long) } else { Arc::clone(&list) };
                let mut create = node(&format!("/{number}-{n}"), CreateMode::Persistent);
                create.acl = acl;
                let _ = peer.call(Request::Create(create)).await;
            }
        }
    })
    .await;
}

async fn identities(address: String) {
    crowd(100, |number| {
        let address = address.clone();
        async move {
            let Some(mut peer) = attacker(&address).await else { return };
            for n in 0..10 {
                let credentials = format!("{number}-{n}{}:p", "u".repeat(200_000)).into_bytes().into();
                peer.send(Request::Auth { scheme: "digest".into(), credentials }).await;
                if peer.reply().await.is_none() {
                    return;
                }
            }
        }
    })
    .await;
}

async fn long_watches(address: String) {
    crowd(3, |number| {
        let address = address.clone();
        async move {
            let Some(mut peer) = attacker(&address).await else { return };
            for n in 0..100 {
                let path = format!("/{number}-{n}{}", "w".repeat(300_000));
                let _ = peer.exists(&path, true).await;
            }
        }
    })
    .await;
}

async fn a_million_watches(address: String) {
    crowd(4, |number| {
        let address = address.clone();
        async move {
            let Some(mut peer) = attacker(&address).await else { return };
            for n in 0..500 {
                let exist = (0..500).map(|w| format!("/{number}-{n}-{w}")).collect();
                let _ = peer.call(Request::SetWatches(Watches { exist, ..Watches::default() })).await;
            }
        }
    })
    .await;
}

async fn chains_of_recursive_watches(address: String) {
    const DEPTH: usize = 1_500;
    let Some(mut first) = attacker(&address).await else { return };
    let path = "/d".repeat(DEPTH);
    let chain: Vec<String> = (1..=DEPTH).map(|depth| path[..2 * depth].to_owned()).collect();
    for piece in chain.chunks(100) {
        let create = |path: &String| MultiOp::Create(node(path, CreateMode::Persistent));
        first
            .call(Request::Multi(piece.iter().map(create).collect()))
            .await
            .expect("there is room for the nodes");
    }
    let touch = MultiOp::SetData { path, data: None, version: -1 };
    crowd(2, |_| {
        let (address, recursive, touch) = (address.clone(), chain.clone(), touch.clone());
        async move {
            let Some(mut peer) = attacker(&address).await else { return };
            for recursive in recursive.chunks(100).map(<[String]>::to_vec) {
                let (once, persistent) = (Watches::default(), Vec::new());
                let _ = peer.call(Request::SetWatches2 { once, persistent, recursive }).await;
            }
            loop {
                let _ = peer.call(Request::Multi(vec![touch.clone(); 100])).await;
            }
        }
    })
    .await;
}

async fn replies_that_are_not_read(address: String) {
    let Some(mut first) = attacker(&address).await else { return };
    first.set_data("/", &[7; 1_000_000]).await.expect("the data fits");
    let read = Request::MultiRead(vec![MultiOp::GetData { path: "/".into() }; 7]);
    crowd(200, |_| {
        let (address, read) = (address.clone(), read.clone());
        async move {
            let Some(mut peer) = attacker(&address).await else { return };
            for _ in 0..200 {
                peer.send(read.clone()).await;
            }
            tokio::time::sleep(Duration::from_secs(60)).await;
        }
    })
    .await;
}

async fn events_that_are_not_read(address: String) {
    let mut deaf = Vec::new();
    for _ in 0..200 {
        if let Some(mut peer) = attacker(&address).await {
            let watch = Request::AddWatch { path: "/".into(), mode: WatchMode::PersistentRecursive };
            let _ = peer.call(watch).await;
            deaf.push(peer);
        }
    }
    crowd(1, |_| {
        let address = address.clone();
        async move {
            let Some(mut peer) = attacker(&address).await else { return };
            let long = format!("/{}", "n".repeat(200_000));
            let _ = peer.create(&long, CreateMode::Persistent).await;
            loop {
                let touch = MultiOp::SetData { path: "/".into(), data: None, version: -1 };
                let _ = peer.call(Request::Multi(vec![touch; 20_000])).await;
                let _ = peer.set_data(&long, b"").await;
            }
        }
    })
    .await;
}

async fn lists_that_are_too_long(address: String) {
    let Some(mut first) = attacker(&address).await else { return };
    for n in 0..19_000 {
        let _ = first.create(&format!("/n{n}{}", "n".repeat(300)), CreateMode::Ephemeral).await;
    }
    crowd(50, |number| {
        let address = address.clone();
        async move {
            if number % 2 == 0 {
                let _ = try_four_letter_word(&address, if number % 4 == 0 { "dump" } else { "cons" }).await;
            }
            let Some(mut peer) = attacker(&address).await else { return };
            for _ in 0..50 {
                peer.send(Request::GetChildren { path: "/".into(), watch: false }).await;
            }
            // Read in parts, because the memory that this process needs for replies counts as well.
            let mut part = vec![0; 64 << 10];
            while peer.stream.read(&mut part).await.is_ok_and(|count| count > 0) {}
        }
    })
    .await;
}

async fn frames_that_never_end(address: String) {
    crowd(390, |number| {
        let address = address.clone();
        async move {
            let peer = if number % 2 == 0 { attacker(&address).await } else { dial(&address).await };
            let Some(mut peer) = peer else { return };
            peer.send_bytes(&1_000_000_i32.to_be_bytes()).await;
            peer.send_bytes(&vec![0; 999_999]).await;
            peer.is_closed().await;
        }
    })
    .await;
}

async fn bytes_that_drip(address: String) {
    crowd(390, |_| {
        let address = address.clone();
        async move {
            let Some(mut peer) = dial(&address).await else { return };
            for byte in [0, 0, 0, 44] {
                peer.send_bytes(&[byte]).await;
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
        }
    })
    .await;
}

async fn links_without_number(address: String) {
    for _ in 0..5 {
        crowd(1_000, |number| {
            let address = address.clone();
            async move {
                let Some(mut peer) = dial(&address).await else { return };
                if number % 2 == 0 && peer.attach(&fresh(4_000)).await {
                    let _ = peer.call(Request::Ping).await;
                }
            }
        })
        .await;
    }
}

async fn multis_without_end(address: String) {
    let touch = MultiOp::SetData { path: "/".into(), data: None, version: -1 };
    let long = Request::Multi(vec![touch; 10_000]);
    let create = |n| MultiOp::Create(node(&format!("/m{n}"), CreateMode::Persistent));
    let undone = Request::Multi((0..5_000).chain([0]).map(create).collect());
    crowd(3, |_| {
        let (address, long, undone) = (address.clone(), long.clone(), undone.clone());
        async move {
            let Some(mut peer) = attacker(&address).await else { return };
            for _ in 0..20 {
                let _ = peer.call(long.clone()).await;
                let _ = peer.call(undone.clone()).await;
                // None of these headers marks the end of the multi.
                peer.send_bytes(&frame(
                    OpCode::Multi as i32,
                    &[0, 0, 0, 14, 0, 255, 255, 255, 255].repeat(20_000),
                ))
                .await;
                peer.reply().await;
            }
        }
    })
    .await;
}

async fn small_requests_without_end(address: String) {
    crowd(4, |_| {
        let address = address.clone();
        async move {
            let Some(mut peer) = attacker(&address).await else { return };
            let exists = frame(OpCode::Exists as i32, b"\0\0\0\x01/\0").repeat(1_000);
            loop {
                peer.send_bytes(&exists).await;
                for _ in 0..1_000 {
                    peer.reply().await;
                }
            }
        }
    })
    .await;
}

async fn reads_of_all_nodes_without_end(address: String) {
    let Some(mut peer) = attacker(&address).await else { return };
    let _ = peer.create("/all", CreateMode::Persistent).await;
    for start in (0..19_000).step_by(1_000) {
        let create = |n| MultiOp::Create(node(&format!("/all/{n}"), CreateMode::Persistent));
        let _ = peer.call(Request::Multi((start..start + 1_000).map(create).collect())).await;
    }
    crowd(4, |_| {
        let address = address.clone();
        async move {
            let Some(mut peer) = attacker(&address).await else { return };
            let count = frame(OpCode::GetAllChildrenNumber as i32, b"\0\0\0\x04/all").repeat(1_000);
            peer.send_bytes(&count).await;
            while peer.reply().await.is_some() {}
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_attack_exceeds_the_memory_limits_or_delays_other_clients() {
    let _turn = TURN.lock().await;
    // The attackers have their own threads, so they compete for processors but not for the server's turns.
    let attackers = Runtime::new().expect("a runtime can be started");
    besiege("nodes", &attackers, nodes).await;
    besiege("access control lists", &attackers, access_control_lists).await;
    besiege("identities", &attackers, identities).await;
    besiege("long watches", &attackers, long_watches).await;
    besiege("a million watches", &attackers, a_million_watches).await;
    besiege("chains of recursive watches", &attackers, chains_of_recursive_watches).await;
    besiege("replies that nobody reads", &attackers, replies_that_are_not_read).await;
    besiege("events that nobody reads", &attackers, events_that_are_not_read).await;
    besiege("lists that are too long", &attackers, lists_that_are_too_long).await;
    besiege("frames that never end", &attackers, frames_that_never_end).await;
    besiege("bytes that drip", &attackers, bytes_that_drip).await;
    besiege("links without number", &attackers, links_without_number).await;
    besiege("multis without end", &attackers, multis_without_end).await;
    besiege("small requests without end", &attackers, small_requests_without_end).await;
    besiege("looks at all nodes without end", &attackers, reads_of_all_nodes_without_end).await;
    attackers.shutdown_background();
}
