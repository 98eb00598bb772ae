//! Clients of a follower that lags: how old the tree is that they see, and which events end the lag.

mod steps;
mod watches;

use crate::support::world::{Dial, World};
use crate::support::{Peer, node};
use docent_proto::{
    Code, CreateMode, EventKind, MultiOp, MultiResult, Request, Response, WatchEvent, WatchMode, Watches,
};
use docent_server::{Follower, Server};
use std::time::Duration;

const TIMEOUT_MS: i32 = 20_000;

/// Starts a server with a follower that lags by two seconds.
async fn world() -> (World, Follower, Dial) {
    let world = World::new(Server::builder()).await;
    let (follower, dial) = world.follower(|builder| builder.lag(Duration::from_secs(2))).await;
    (world, follower, dial)
}

async fn children(peer: &mut Peer, watch: bool) -> Vec<String> {
    let request = Request::GetChildren2 { path: "/line".into(), watch };
    match peer.call(request).await.expect("the children of /line can be listed") {
        Response::Children { names, .. } => names,
        other => panic!("{other:?}"),
    }
}

/// Returns a client that has created `/line`, loses the reply to a create below it at one second, and
/// reconnects to the follower.
async fn reconnects(world: &World, dial: &Dial) -> Peer {
    let mut first = world.peer(TIMEOUT_MS).await;
    first.create("/line", CreateMode::Persistent).await.expect("the node can be created");
    world.at(1_000).await;
    let ticket = first.ticket();
    first.create("/line/mine", CreateMode::Ephemeral).await.expect("the node can be created");
    dial.attach(&ticket).await
}

#[tokio::test(start_paused = true)]
async fn a_node_created_over_a_lost_link_is_shown_only_after_the_lag() {
    let (world, _follower, dial) = world().await;
    let mut peer = reconnects(&world, &dial).await;
    let created = world.server.zxid();
    assert_eq!(children(&mut peer, false).await, [""; 0]);
    assert_eq!(peer.exists("/line/mine", false).await, Err(Code::NO_NODE));
    assert_eq!(peer.get_data("/line/mine", false).await, Err(Code::NO_NODE));
    let ops = vec![MultiOp::GetChildren { path: "/line".into() }];
    let Ok(Response::Multi(results)) = peer.call(Request::MultiRead(ops)).await else { panic!() };
    assert_eq!(results, [MultiResult::Children(Vec::new())]);
    peer.call(Request::Ping).await.unwrap();
    assert_eq!(peer.last_zxid, created - 1);
    world.at(2_999).await;
    assert_eq!(children(&mut peer, false).await, [""; 0]);
    world.at(3_000).await;
    assert_eq!(children(&mut peer, false).await, ["mine"]);
    assert_eq!(peer.last_zxid, created);
}

#[tokio::test(start_paused = true)]
async fn a_sync_ends_the_lag() {
    let (world, _follower, dial) = world().await;
    let mut peer = reconnects(&world, &dial).await;
    peer.call(Request::Sync { path: "/line".into() }).await.unwrap();
    assert_eq!(children(&mut peer, false).await, ["mine"]);
}

#[tokio::test(start_paused = true)]
async fn an_own_write_ends_the_lag_even_if_it_is_refused() {
    for (request, answer) in [
        (Request::Create(node("/other", CreateMode::Persistent)), Ok(())),
        (Request::Delete { path: "/none".into(), version: -1 }, Err(Code::NO_NODE)),
    ] {
        let (world, _follower, dial) = world().await;
        let mut peer = reconnects(&world, &dial).await;
        assert_eq!(peer.call(request).await.map(drop), answer);
        assert_eq!(children(&mut peer, false).await, ["mine"]);
    }
}

#[tokio::test(start_paused = true)]
async fn an_own_write_succeeds_after_most_of_the_past_was_dropped() {
    let (world, _follower, dial) = world().await;
    let (mut peer, mut other) = (dial.peer(TIMEOUT_MS).await, world.peer(TIMEOUT_MS).await);
    for path in ["/a", "/b", "/c", "/d", "/e"] {
        other.create(path, CreateMode::Persistent).await.expect("the node can be created");
    }
    world.at(1_500).await;
    other.create("/f", CreateMode::Persistent).await.expect("the node can be created");
    world.at(2_500).await;
    peer.create("/g", CreateMode::Persistent).await.expect("the node can be created");
    assert!(peer.exists("/f", false).await.is_ok(), "a change before its own write is hidden");
}

#[tokio::test(start_paused = true)]
async fn nothing_is_shown_that_is_older_than_what_the_client_has_seen() {
    let (world, _follower, dial) = world().await;
    let mut writer = world.peer(TIMEOUT_MS).await;
    writer.create("/line", CreateMode::Persistent).await.unwrap();
    writer.create("/line/a", CreateMode::Persistent).await.unwrap();
    let ticket = writer.ticket();
    writer.create("/line/b", CreateMode::Persistent).await.unwrap();
    // Opening a session is a transaction that the follower has seen. An attached session has seen what its
    // handshake says.
    let mut fresh = dial.peer(TIMEOUT_MS).await;
    assert_eq!(children(&mut fresh, false).await, ["a", "b"]);
    let mut moved = dial.attach(&ticket).await;
    assert_eq!(children(&mut moved, false).await, ["a"]);
    let mut other = world.peer(TIMEOUT_MS).await;
    other.create("/line/c", CreateMode::Persistent).await.unwrap();
    // The follower lags for both clients, as far as permitted for each.
    assert_eq!(children(&mut fresh, false).await, ["a", "b"]);
    assert_eq!(children(&mut moved, false).await, ["a"]);
    // A server without a lag shows the present to everyone.
    let mut near = world.dial.attach(&ticket).await;
    assert_eq!(children(&mut near, false).await, ["a", "b", "c"]);
}

fn events(events: &[(EventKind, &str)]) -> Vec<WatchEvent> {
    events.iter().map(|(kind, path)| WatchEvent { kind: *kind, path: (*path).to_owned() }).collect()
}

/// Requests that set a persistent watch, each in its own way.
fn staying(path: &str, mode: WatchMode) -> [Request; 2] {
    let paths = |wanted| if mode == wanted { vec![path.to_owned()] } else { Vec::new() };
    let again = Request::SetWatches2 {
        once: Watches::default(),
        persistent: paths(WatchMode::Persistent),
        recursive: paths(WatchMode::PersistentRecursive),
    };
    [Request::AddWatch { path: path.into(), mode }, again]
}

#[tokio::test(start_paused = true)]
async fn the_lag_can_be_set_at_run_time_and_affects_no_other_member() {
    let (world, follower, dial) = world().await;
    let (_prompt, prompt_dial) = world.follower(|builder| builder).await;
    let mut peer = reconnects(&world, &dial).await;
    assert_eq!(children(&mut peer, false).await, [""; 0]);
    let ticket = peer.ticket();
    let mut prompt = prompt_dial.attach(&ticket).await;
    assert_eq!(children(&mut prompt, false).await, ["mine"]);
    let mut peer = dial.attach(&ticket).await;
    assert_eq!(children(&mut peer, false).await, [""; 0]);
    follower.set_lag(Duration::ZERO);
    assert_eq!(children(&mut peer, false).await, ["mine"]);
    // A version that was not kept cannot be shown.
    follower.set_lag(Duration::from_secs(2));
    let mut peer = dial.attach(&ticket).await;
    assert_eq!(children(&mut peer, false).await, ["mine"]);
}

#[tokio::test(start_paused = true)]
async fn a_follower_that_is_cut_off_shows_its_last_tree_and_lags_again_when_it_rejoins() {
    let (world, follower, dial) = world().await;
    let mut peer = reconnects(&world, &dial).await;
    assert_eq!(children(&mut peer, false).await, [""; 0]);
    let ticket = peer.ticket();
    follower.cut_off();
    assert_eq!(children(&mut peer, false).await, ["mine"]);
    follower.rejoin();
    assert!(peer.is_closed().await);
    let mut peer = dial.attach(&ticket).await;
    assert_eq!(children(&mut peer, false).await, [""; 0]);
}

fn created(path: &str) -> MultiOp {
    MultiOp::Create(node(path, CreateMode::Persistent))
}

fn deleted(path: &str) -> MultiOp {
    MultiOp::Delete { path: path.into(), version: -1 }
}
