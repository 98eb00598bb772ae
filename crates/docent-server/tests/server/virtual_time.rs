//! Timeouts and ticks, on a paused clock.

use crate::support::node;
use crate::support::world::World;
use docent_proto::{Code, Create, CreateKind, CreateMode, EventKind, Request, WatchEvent};
use docent_server::{Limits, Server, TransactionKind};
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// Waits for the session to end, and returns how long that took.
async fn end_of(server: &Server, session: i64) -> Duration {
    let start = Instant::now();
    while server.session(session).is_some() {
        sleep(Duration::from_millis(1)).await;
    }
    start.elapsed()
}

#[tokio::test(start_paused = true)]
async fn a_silent_session_ends_with_the_tick_in_which_its_timeout_does() {
    let world = World::new(Server::builder()).await;
    let mut silent = world.peer(5_000).await;
    silent.create("/mine", CreateMode::Ephemeral).await.unwrap();
    let mut watcher = world.peer(40_000).await;
    watcher.exists("/mine", true).await.unwrap();
    let took = end_of(&world.server, silent.session.session_id).await;
    let (timeout, tick) = (Duration::from_millis(5_000), Duration::from_millis(2_002));
    assert!(took > timeout && took <= timeout + tick, "{took:?}");
    assert_eq!(watcher.event().await, WatchEvent { kind: EventKind::Deleted, path: "/mine".into() });
    assert!(silent.is_closed().await);
}

#[tokio::test(start_paused = true)]
async fn pings_keep_a_session_alive() {
    let world = World::new(Server::builder()).await;
    let mut peer = world.peer(4_000).await;
    for _ in 0..20 {
        sleep(Duration::from_secs(3)).await;
        peer.call(Request::Ping).await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn no_session_expires_while_the_server_does_not_listen() {
    let world = World::new(Server::builder()).await;
    let peer = world.peer(4_000).await;
    world.server.stop_listening().await.unwrap();
    sleep(Duration::from_secs(3_600)).await;
    assert_eq!(world.server.session_count(), 1);
    world.server.listen_again().await.unwrap();
    let took = end_of(&world.server, peer.session.session_id).await;
    assert!(took > Duration::from_secs(4), "the session must get a full timeout after the restart: {took:?}");
}

#[tokio::test(start_paused = true)]
async fn a_container_is_deleted_some_time_after_its_last_child() {
    let world = World::new(Server::builder().container_check(Duration::from_secs(5))).await;
    let mut peer = world.peer(40_000).await;
    for path in ["/never-used", "/used"] {
        peer.create(path, CreateMode::Container).await.unwrap();
    }
    peer.create("/used/child", CreateMode::Persistent).await.unwrap();
    sleep(Duration::from_secs(6)).await;
    assert_eq!(world.server.nodes(), ["/never-used", "/used", "/used/child"]);
    peer.exists("/used", true).await.unwrap();
    peer.delete("/used/child").await.unwrap();
    sleep(Duration::from_secs(6)).await;
    assert_eq!(world.server.nodes(), ["/never-used"]);
    assert_eq!(peer.event().await, WatchEvent { kind: EventKind::Deleted, path: "/used".into() });
    assert_eq!(peer.exists("/used", false).await, Err(Code::NO_NODE));
}

#[tokio::test(start_paused = true)]
async fn a_node_with_a_time_to_live_is_deleted_if_it_is_not_set_in_time() {
    let builder = Server::builder().ttl_nodes(true).container_check(Duration::from_secs(5)).journal(true);
    let world = World::new(builder).await;
    let mut peer = world.peer(40_000).await;
    for path in ["/alone", "/set", "/parent"] {
        let kind = CreateKind::Ttl(8_000);
        let create = Create { kind, ..node(path, CreateMode::PersistentTtl) };
        peer.call(Request::Create(create)).await.unwrap();
    }
    peer.create("/parent/child", CreateMode::Persistent).await.unwrap();
    sleep(Duration::from_secs(4)).await;
    peer.set_data("/set", b"new").await.unwrap();
    peer.exists("/alone", true).await.unwrap();
    sleep(Duration::from_secs(5)).await;
    assert_eq!(world.server.nodes(), ["/alone", "/parent", "/parent/child", "/set"]);
    sleep(Duration::from_secs(2)).await;
    assert_eq!(world.server.nodes(), ["/parent", "/parent/child", "/set"]);
    assert_eq!(peer.event().await, WatchEvent { kind: EventKind::Deleted, path: "/alone".into() });
    let last = world.server.journal().pop().expect("the journal contains the deletion");
    assert_eq!((last.kind, last.path.as_str(), last.session), (TransactionKind::Deleted, "/alone", 0));
    peer.delete("/parent/child").await.unwrap();
    sleep(Duration::from_secs(5)).await;
    assert!(world.server.nodes().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_link_has_its_time_for_the_handshake_and_no_more() {
    let limit = Duration::from_secs(7);
    let world = World::new(Server::builder().limits(Limits::default().handshake(limit))).await;
    let (mut silent, start) = (world.link(), Instant::now());
    assert!(silent.is_closed().await);
    assert_eq!(start.elapsed().as_secs(), limit.as_secs());
}

#[tokio::test(start_paused = true)]
async fn a_session_lives_by_the_smaller_timeout_it_is_granted_when_it_is_attached_again() {
    let world = World::new(Server::builder()).await;
    let peer = world.peer(20_000).await;
    world.server.set_session_timeouts(Duration::from_secs(4), Duration::from_secs(6));
    assert_eq!(world.server.session(peer.session.session_id).unwrap().timeout.as_secs(), 20);
    let mut back = world.dial.attach(&peer.ticket()).await;
    assert_eq!(back.session.timeout_ms, 6_000);
    assert_eq!(world.server.session(peer.session.session_id).unwrap().timeout.as_secs(), 6);
    world.at(5_000).await;
    back.call(Request::Ping).await.unwrap();
    // Touched at 5 s with a timeout of 6 s, the session lives until the end of the tick from 10 to 12 s.
    assert!((12_000..12_003).contains(&world.end_of(&back).await));
}
