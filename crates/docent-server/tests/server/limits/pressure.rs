//! Clients that request more than may be queued in all links: none of them loses its link, but they wait for
//! each other.

#![allow(clippy::unwrap_used, reason = "a test that cannot continue fails")]

use super::{shown, version};
use crate::support::Peer;
use crate::support::warnings::Warnings;
use crate::support::world::World;
use docent_proto::{Code, CreateMode, Request};
use docent_server::{Limits, Server};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::timeout;

/// Maximum bytes queued in all links. Half of it is for replies, which is room for two large ones.
const QUEUED: usize = 800_000;

/// Size of the node that is read. A pipe in memory holds less than half of it.
const LARGE: usize = 190_000;

fn read() -> Request {
    Request::GetData { path: "/".into(), watch: false }
}

fn limits() -> Limits {
    Limits::default().queued_bytes(QUEUED)
}

/// Starts a server with a large node, two clients that have requested it and do not read, and a third client.
async fn crowded(timeout_ms: i32) -> (World, [Peer; 2], Peer) {
    let world = World::new(Server::builder().limits(limits())).await;
    let mut last = world.peer(timeout_ms).await;
    last.set_data("/", &[7; LARGE]).await.expect("the data fits");
    let mut deaf = [world.peer(10_000).await, world.peer(10_000).await];
    for peer in &mut deaf {
        peer.send(read()).await;
        last.call(Request::Ping).await.expect("small requests are answered");
    }
    (world, deaf, last)
}

/// Waits some seconds for the next frame, while `others` send pings. Returns whether a frame arrived.
async fn is_answered(waiting: &mut Peer, others: &mut [Peer], seconds: u64) -> bool {
    for _ in 0..seconds {
        for other in &mut *others {
            other.send(Request::Ping).await;
        }
        if timeout(Duration::from_secs(1), waiting.peek_frame()).await.is_ok() {
            return true;
        }
    }
    false
}

async fn assert_read(peer: &mut Peer) {
    let (header, body) = peer.reply().await.expect("the link stays open");
    assert_eq!(header.code, Code::OK);
    assert!(body.len() > LARGE);
}

#[tokio::test(start_paused = true)]
async fn a_reply_waits_for_room_and_its_session_lives_meanwhile() {
    // Without sign of life, the session would have expired three times.
    let (world, mut deaf, mut last) = crowded(4_000).await;
    last.send(read()).await;
    assert!(!is_answered(&mut last, &mut deaf, 15).await);
    assert_eq!(world.server.session_count(), 3);
    assert_read(&mut deaf[0]).await;
    assert_read(&mut last).await;
    assert_read(&mut deaf[1]).await;
    assert_eq!(world.server.connection_count(), 3);
}

#[tokio::test(start_paused = true)]
async fn replies_get_room_in_order_of_their_requests() {
    let (world, mut deaf, last) = crowded(10_000).await;
    let (mut waiting, served) = (vec![last], Arc::new(Mutex::new(Vec::new())));
    for _ in 0..5 {
        waiting.push(world.peer(10_000).await);
    }
    let mut readers = JoinSet::new();
    for (number, mut peer) in waiting.into_iter().enumerate() {
        peer.send(read()).await;
        assert!(!is_answered(&mut peer, &mut deaf, 1).await);
        let served = Arc::clone(&served);
        readers.spawn(async move {
            assert_read(&mut peer).await;
            served.lock().unwrap().push(number);
        });
    }
    assert_read(&mut deaf[0]).await;
    readers.join_all().await;
    assert_eq!(*served.lock().unwrap(), [0, 1, 2, 3, 4, 5]);
}

#[tokio::test(start_paused = true)]
async fn small_requests_are_answered_while_large_ones_wait_for_room() {
    let (world, mut deaf, mut last) = crowded(10_000).await;
    let mut waiting = world.peer(10_000).await;
    waiting.send(read()).await;
    assert!(!is_answered(&mut waiting, &mut deaf, 1).await);
    last.create("/small", CreateMode::Persistent).await.expect("a small request is answered");
    last.set_data("/small", &[7; 10_000]).await.expect("a small request is answered");
    last.get_data("/small", true).await.expect("a small request is answered");
    // This also applies behind a large reply that the client does not read.
    deaf[0].send(Request::SetData { path: "/small".into(), data: None, version: -1 }).await;
    assert_eq!(last.event().await.path, "/small");
    assert_read(&mut deaf[0]).await;
}

#[tokio::test(start_paused = true)]
async fn a_link_has_one_large_reply_at_most_while_other_links_wait() {
    let (world, mut deaf, mut last) = crowded(10_000).await;
    deaf[0].send(read()).await;
    last.send(read()).await;
    assert!(!is_answered(&mut last, &mut deaf, 1).await);
    // The second request of the other client arrived first, but that client has read nothing of its first
    // reply.
    assert_read(&mut deaf[1]).await;
    assert_read(&mut last).await;
    assert_read(&mut deaf[0]).await;
    assert_read(&mut deaf[0]).await;
    assert_eq!(world.server.connection_count(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_client_that_has_not_read_lives_as_long_as_it_pings() {
    let (world, mut deaf, mut last) = crowded(20_000).await;
    // The pings are queued behind a request that waits until the client has read its first reply.
    deaf[0].send(read()).await;
    for _ in 0..5 {
        assert!(!is_answered(&mut last, &mut deaf, 5).await);
        last.send(Request::Ping).await;
        last.reply().await.expect("the link stays open");
    }
    assert_eq!(world.server.session_count(), 3);
    let silent = deaf[0].session.session_id;
    assert!(!is_answered(&mut last, &mut deaf[1..], 15).await);
    assert!(world.server.session(silent).is_none(), "a session without a sign of life did not expire");
    assert_eq!(world.server.session_count(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_client_that_reads_nothing_for_a_minute_is_closed() {
    let warnings = Warnings::watch();
    let (world, mut deaf, mut last) = crowded(10_000).await;
    for _ in 0..40 {
        world.at(u64::try_from(world.server.time_ms()).unwrap() + 3_000).await;
        last.call(Request::Ping).await.expect("small requests are answered");
        for peer in &mut deaf {
            peer.send(Request::Ping).await;
        }
    }
    assert_eq!(world.server.connection_count(), 3, "a link was closed although no other link waits");
    last.send(read()).await;
    assert!(is_answered(&mut last, &mut deaf, 10).await);
    assert_read(&mut last).await;
    for peer in &mut deaf {
        assert!(peer.is_closed().await);
    }
    assert_eq!(
        warnings
            .saying("client does not read its replies while others wait for memory; closing its connection"),
        2
    );
}

#[tokio::test(start_paused = true)]
async fn a_reply_that_is_longer_than_all_that_may_wait_is_refused() {
    let warnings = Warnings::watch();
    let world = World::new(Server::builder().limits(limits().queued_bytes_per_connection(300_000))).await;
    let mut peer = world.peer(10_000).await;
    peer.set_data("/", &[7; LARGE]).await.expect("the data fits");
    assert_eq!(peer.get_data("/", false).await, Err(Code::QUOTA_EXCEEDED));
    warnings.assert_about("reply_bytes", 150_000);
    peer.set_data("/", &[7; 140_000]).await.expect("the data fits");
    assert_eq!(shown(&mut peer).await.len(), 140_000);
}

#[tokio::test(start_paused = true)]
async fn a_large_request_waits_for_room_and_its_session_lives_meanwhile() {
    let world = World::new(Server::builder().limits(limits())).await;
    let mut bystander = world.peer(10_000).await;
    let mut endless = world.peer(20_000).await;
    // There is room for one such request, most of which never arrives.
    endless.send_bytes(&150_000_i32.to_be_bytes()).await;
    let mut writer = world.peer(4_000).await;
    let write = tokio::spawn(async move { writer.set_data("/", &[7; 100_000]).await });
    for _ in 0..15 {
        tokio::time::sleep(Duration::from_secs(1)).await;
        bystander.call(Request::Ping).await.expect("small requests are answered");
    }
    assert!(!write.is_finished());
    assert_eq!((world.server.session_count(), version(&mut bystander, "/").await), (3, 0));
    // The session of a client that does not complete its request expires.
    assert!(endless.is_closed().await);
    write.await.expect("the task does not panic").expect("the link stays open");
}

#[tokio::test(start_paused = true)]
async fn requests_received_before_the_end_of_a_link_are_executed() {
    let (world, deaf, mut last) = crowded(10_000).await;
    for _ in 0..10 {
        last.send(read()).await;
    }
    last.send(Request::SetData { path: "/zookeeper".into(), data: None, version: -1 }).await;
    last.end().await;
    let mut bystander = world.peer(10_000).await;
    assert_eq!(version(&mut bystander, "/zookeeper").await, 0);
    drop(deaf);
    while last.frame().await.is_some() {}
    assert_eq!(version(&mut bystander, "/zookeeper").await, 1);
}
