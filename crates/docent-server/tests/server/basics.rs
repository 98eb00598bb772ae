//! Basic operations over TCP.

use crate::support::Peer;
use docent_proto::{Code, CreateMode, EventKind, Request, Response, WatchEvent};
use docent_server::{Limits, Server};
use std::time::Duration;

#[tokio::test]
async fn a_node_is_created_read_changed_and_deleted() {
    let server = Server::start().await.unwrap();
    let mut peer = Peer::open(&server).await;
    assert_eq!(peer.create("/a", CreateMode::Persistent).await, Ok("/a".to_owned()));
    assert_eq!(peer.create("/a", CreateMode::Persistent).await, Err(Code::NODE_EXISTS));
    peer.set_data("/a", b"one").await.unwrap();
    let Ok(Response::Data { data, stat }) = peer.get_data("/a", false).await else { panic!() };
    assert_eq!((data.as_deref(), stat.version, stat.data_length), (Some(&b"one"[..]), 1, 3));
    assert_eq!(peer.delete("/a").await, Ok(Response::Empty));
    assert_eq!(peer.delete("/a").await, Err(Code::NO_NODE));
    assert!(server.nodes().is_empty());
}

#[tokio::test]
async fn a_watch_fires_on_the_link_that_set_it() {
    let server = Server::start().await.unwrap();
    let (mut watcher, mut writer) = (Peer::open(&server).await, Peer::open(&server).await);
    assert_eq!(watcher.exists("/a", true).await, Err(Code::NO_NODE));
    writer.create("/a", CreateMode::Ephemeral).await.unwrap();
    assert_eq!(watcher.event().await, WatchEvent { kind: EventKind::Created, path: "/a".into() });
    watcher.get_data("/a", true).await.unwrap();
    assert_eq!(writer.call(Request::CloseSession).await, Ok(Response::Empty));
    assert_eq!(watcher.event().await, WatchEvent { kind: EventKind::Deleted, path: "/a".into() });
    assert!(writer.is_closed().await);
}

#[tokio::test]
async fn numbers_of_sequential_children_can_be_skipped_but_do_not_go_back() {
    let server = Server::start().await.unwrap();
    let mut peer = Peer::open(&server).await;
    assert!(!server.skip_numbers("/line", 5), "numbers were skipped for a missing node");
    peer.create("/line", CreateMode::Persistent).await.unwrap();
    assert!(server.skip_numbers("/line", 2_146_435_071));
    let first = peer.create("/line/n-", CreateMode::EphemeralSequential).await;
    assert_eq!(first, Ok("/line/n-2146435071".to_owned()));
    assert!(!server.skip_numbers("/line", 2_146_435_071), "the counter went back");
    assert_eq!(server.node_count(), server.nodes().len());
}

#[tokio::test]
async fn the_longest_durations_never_end() {
    let limits = Limits::default().handshake(Duration::MAX);
    let settings = Server::builder().tick(Duration::MAX).container_check(Duration::MAX).limits(limits);
    let server = settings.session_timeouts(Duration::ZERO, Duration::MAX).start().await.unwrap();
    let follower = server.follower().relay_interval(Duration::MAX).lag(Duration::MAX).start().await.unwrap();
    let mut peer = Peer::open(&server).await;
    peer.create("/a", CreateMode::Persistent).await.unwrap();
    peer.get_data("/a", false).await.unwrap();
    follower.cut_off();
    follower.rejoin();
    peer.delete("/a").await.unwrap();
}
