//! Limits on events and on queued bytes.

use super::{add_watch, deaf};
use crate::support::warnings::Warnings;
use crate::support::world::World;
use docent_proto::{Code, CreateMode, EventKind, Request, WatchEvent, WatchMode};
use docent_server::{Limits, Server};

#[tokio::test(start_paused = true)]
async fn events_that_a_client_does_not_read_close_its_link() {
    let warnings = Warnings::watch();
    let limits = Limits::default().queued_bytes_per_connection(200_000);
    let (world, mut deaf, mut busy, path) = deaf(limits).await;
    let mut created = 0;
    while world.server.connection_count() == 2 {
        created += 1;
        assert!(created < 400, "the limit has room for 200 events, and the pipe for 64");
        busy.set_data(&path, b"").await.expect("the server continues");
    }
    assert!(created > 200);
    warnings.assert_about("queued_bytes_per_connection", 200_000);
    assert!(deaf.is_closed().await);
}

#[tokio::test(start_paused = true)]
async fn queued_events_of_all_links_close_the_link_with_the_most() {
    let warnings = Warnings::watch();
    let (world, mut deaf, mut busy, path) = deaf(Limits::default().queued_bytes(1_000_000)).await;
    let (mut less, mut reader) = (world.peer(10_000).await, world.peer(10_000).await);
    // A reply that is larger than all events is queued.
    busy.set_data("/", &[7; 240_000]).await.expect("the data fits");
    reader.send(Request::GetData { path: "/".into(), watch: false }).await;
    for _ in 0..100 {
        busy.set_data(&path, b"").await.expect("the server continues");
    }
    less.call(add_watch(&path)).await.expect("there is room for the watch");
    while world.server.connection_count() == 4 {
        busy.set_data(&path, b"").await.expect("the server continues");
    }
    warnings.assert_about("queued_bytes / 4", 250_000);
    assert!(deaf.is_closed().await);
    less.call(Request::Ping).await.expect("the link stays open");
    assert_eq!(reader.reply().await.expect("the link stays open").0.code, Code::OK);
}

#[tokio::test(start_paused = true)]
async fn events_of_a_transaction_over_the_limit_close_the_links_that_would_be_notified() {
    let warnings = Warnings::watch();
    let world = World::new(Server::builder().limits(Limits::default().events_per_transaction(3))).await;
    let mut peers = Vec::new();
    for _ in 0..5 {
        let mut peer = world.peer(10_000).await;
        peer.get_data("/", true).await.expect("the root exists");
        peers.push(peer);
    }
    let mut busy = world.peer(10_000).await;
    busy.set_data("/", b"x").await.expect("the server continues");
    for (index, peer) in peers.iter_mut().enumerate() {
        if index < 3 {
            assert_eq!(peer.event().await.path, "/");
        } else {
            assert!(peer.is_closed().await);
        }
    }
    assert_eq!(warnings.about("events_per_transaction").len(), 2);
    assert_eq!(world.server.session_count(), 6);
}

#[tokio::test(start_paused = true)]
async fn sessions_that_end_in_the_same_tick_have_their_events_each() {
    let world = World::new(Server::builder().limits(Limits::default().events_per_transaction(3))).await;
    let mut watcher = world.peer(40_000).await;
    let mode = WatchMode::PersistentRecursive;
    watcher.call(Request::AddWatch { path: "/".into(), mode }).await.expect("there is room for the watch");
    let mut owners = Vec::new();
    for name in ["a", "b", "c"] {
        let mut owner = world.peer(4_000).await;
        for n in 0..2 {
            owner
                .create(&format!("/{name}{n}"), CreateMode::Ephemeral)
                .await
                .expect("the node can be created");
            assert_eq!(watcher.event().await.kind, EventKind::Created);
        }
        owners.push(owner);
    }
    world.end_of(&owners[0]).await;
    assert_eq!(world.server.session_count(), 1);
    for path in ["/a0", "/a1", "/b0", "/b1", "/c0", "/c1"] {
        assert_eq!(watcher.event().await, WatchEvent { kind: EventKind::Deleted, path: path.into() });
    }
    watcher.call(Request::Ping).await.expect("the link stays open");
}
