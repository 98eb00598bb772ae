//! Each limit when it is exceeded: the refusal, the warning with the limit's name, and what keeps working.

mod events;
mod links;
mod past;
mod pressure;
mod tree;
mod watches;

use crate::support::warnings::Warnings;
use crate::support::world::World;
use crate::support::{Peer, node};
use docent_proto::{Acl, Create, CreateMode, Permissions, Request, Response, WatchMode};
use docent_server::{Limits, Server};

async fn limited(limits: Limits) -> Server {
    Server::builder().limits(limits).start().await.expect("there is a free port")
}

fn acl(entries: usize) -> Vec<Acl> {
    let entry =
        |n| Acl { permissions: Permissions::ALL, scheme: "digest".into(), id: format!("user{n}:x").into() };
    Acl::open().into_iter().chain((0..entries).map(entry)).collect()
}

fn guarded(path: &str, entries: usize) -> Request {
    Request::Create(Create { acl: acl(entries).into(), ..node(path, CreateMode::Persistent) })
}

fn add_watch(path: &str) -> Request {
    Request::AddWatch { path: path.into(), mode: WatchMode::Persistent }
}

async fn version(peer: &mut Peer, path: &str) -> i32 {
    match peer.exists(path, false).await {
        Ok(Response::Stat(stat)) => stat.version,
        other => panic!("{other:?}"),
    }
}

/// Starts a server whose links are short pipes in memory, with two clients. The first client watches a node
/// and does not read; the second one changes the node.
async fn deaf(limits: Limits) -> (World, Peer, Peer, String) {
    let world = World::new(Server::builder().limits(limits)).await;
    let (mut deaf, mut busy) = (world.peer(10_000).await, world.peer(10_000).await);
    let path = format!("/{}", "n".repeat(1_000));
    busy.create(&path, CreateMode::Persistent).await.expect("there is room for the node");
    deaf.call(add_watch(&path)).await.expect("there is room for the watch");
    (world, deaf, busy, path)
}

/// Returns the data of the root.
async fn shown(reader: &mut Peer) -> Vec<u8> {
    match reader.get_data("/", false).await {
        Ok(Response::Data { data, .. }) => data.unwrap_or_default().to_vec(),
        other => panic!("{other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn warnings_do_not_flood_the_log() {
    let warnings = Warnings::watch();
    let world = World::new(Server::builder().limits(Limits::default().nodes(0))).await;
    let mut peer = world.peer(10_000).await;
    for second in 0..3 {
        world.at(second * 1_000 + 500).await;
        for _ in 0..50 {
            peer.create("/a", CreateMode::Persistent).await.expect_err("no nodes are allowed");
        }
    }
    assert_eq!(warnings.about("nodes").len(), 3);
    let mut peers = Vec::new();
    for _ in 0..150 {
        let mut peer = world.peer(10_000).await;
        peer.create("/a", CreateMode::Persistent).await.expect_err("no nodes are allowed");
        peers.push(peer);
    }
    // One hundred warnings pass per second, and one of them had passed before. The next warning counts the
    // suppressed ones.
    assert_eq!(warnings.about("nodes").len(), 102);
    world.at(4_000).await;
    peer.create("/a", CreateMode::Persistent).await.expect_err("no nodes are allowed");
    assert_eq!(warnings.about("nodes").last().expect("a warning was logged")["unsaid"], "51");
}
