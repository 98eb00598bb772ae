//! Limits on links, sessions, requests and replies.

use super::{limited, version};
use crate::support::warnings::Warnings;
use crate::support::world::World;
use crate::support::{Peer, fresh, node};
use docent_proto::{Code, CreateMode, MultiOp, Request};
use docent_server::{Limits, Server};
use std::time::Duration;

#[tokio::test]
async fn a_frame_over_the_limit_closes_the_link() {
    let warnings = Warnings::watch();
    let server = limited(Limits::default().frame_bytes(1_000)).await;
    let mut peer = Peer::open(&server).await;
    peer.set_data("/", &[0; 900]).await.expect("the data fits");
    peer.send_bytes(&1_001_i32.to_be_bytes()).await;
    assert!(peer.is_closed().await);
    warnings.assert_about("frame_bytes", 1_000);
}

#[tokio::test]
async fn a_connection_over_the_limit_is_closed_until_another_ends() {
    let warnings = Warnings::watch();
    let server = limited(Limits::default().connections(1)).await;
    let mut first = Peer::open(&server).await;
    assert!(Peer::handshake(&server, &fresh(10_000)).await.is_none());
    warnings.assert_about("connections", 1);
    first.call(Request::CloseSession).await.expect("a session can close itself");
    assert!(first.is_closed().await);
    while Peer::handshake(&server, &fresh(10_000)).await.is_none() {}
}

#[tokio::test]
async fn a_connection_without_a_session_makes_room_for_the_next() {
    let warnings = Warnings::watch();
    let server = limited(Limits::default().connections(2)).await;
    let _with_session = Peer::open(&server).await;
    let mut silent = Peer::raw(&server).await;
    let _next = Peer::open(&server).await;
    assert!(silent.is_closed().await);
    assert_eq!(server.session_count(), 2);
    warnings.assert_about("connections", 2);
}

#[tokio::test]
async fn a_session_over_the_limit_is_refused_but_attaching_is_not() {
    let warnings = Warnings::watch();
    let server = limited(Limits::default().sessions(1)).await;
    let first = Peer::open(&server).await;
    assert!(Peer::handshake(&server, &fresh(10_000)).await.is_none());
    assert_eq!(first.reattach(&server).await.session.session_id, first.session.session_id);
    warnings.assert_about("sessions", 1);
}

#[tokio::test]
async fn a_reply_over_the_limit_is_refused_as_a_whole() {
    let warnings = Warnings::watch();
    let server = limited(Limits::default().reply_bytes(10_000)).await;
    let mut peer = Peer::open(&server).await;
    peer.set_data("/", &[0; 4_000]).await.expect("the data fits");
    let read = |times| Request::MultiRead(vec![MultiOp::GetData { path: "/".into() }; times]);
    peer.call(read(2)).await.expect("the reply fits");
    assert_eq!(peer.call(read(3)).await, Err(Code::QUOTA_EXCEEDED));
    warnings.assert_about("reply_bytes", 10_000);
    let children = |watch| Request::GetChildren { path: "/".into(), watch };
    for n in 0..400 {
        peer.create(&format!("/e{n}"), CreateMode::Ephemeral).await.expect("there is room for the node");
        if n == 200 {
            peer.call(children(false)).await.expect("the reply fits");
        }
    }
    let lists = [
        children(true),
        Request::GetChildren2 { path: "/".into(), watch: true },
        Request::MultiRead(vec![MultiOp::GetChildren { path: "/".into() }]),
        Request::GetEphemerals { prefix: "/".into() },
    ];
    for list in lists {
        assert_eq!(peer.call(list).await, Err(Code::QUOTA_EXCEEDED));
    }
    assert_eq!(server.watch_count(), 0);
}

#[tokio::test]
async fn a_link_without_a_handshake_is_closed() {
    let warnings = Warnings::watch();
    let server = limited(Limits::default().handshake(Duration::from_millis(20))).await;
    let mut silent = Peer::raw(&server).await;
    assert!(silent.is_closed().await);
    warnings.assert_about("handshake", 20);
}

#[tokio::test]
async fn a_client_that_does_not_read_is_not_answered_without_end() {
    let server = Server::start().await.expect("there is a free port");
    let (mut greedy, mut other) = (Peer::open(&server).await, Peer::open(&server).await);
    other.set_data("/", &vec![0; 500_000]).await.expect("the data fits");
    let request = Request::GetData { path: "/".into(), watch: false };
    for _ in 1..=2_000 {
        greedy.send(request.clone()).await;
    }
    // One gigabyte of replies is due, so the link is blocked by now. Other links continue, and reading
    // unblocks this one.
    other.call(Request::Sync { path: "/".into() }).await.expect("the server continues");
    for xid in 1..=20 {
        let (header, body) = greedy.reply().await.expect("the link stays open");
        assert_eq!((header.xid, header.code), (xid, Code::OK));
        assert!(body.len() > 500_000);
    }
}

#[tokio::test(start_paused = true)]
async fn requests_over_the_limit_of_a_link_wait_until_it_reads() {
    const REQUESTS: i32 = 1_500;
    const LIMIT: i32 = 10;
    /// Number of replies of 88 bytes that a pipe has room for.
    const PIPE: i32 = (1 << 16) / 88 + 1;
    let limits = Limits::default().requests_per_connection(LIMIT as usize);
    let world = World::new(Server::builder().limits(limits)).await;
    let (mut greedy, mut other) = (world.peer(10_000).await, world.peer(10_000).await);
    other.create("/a", CreateMode::Persistent).await.expect("there is room for the node");
    for _ in 0..REQUESTS {
        greedy.send(Request::SetData { path: "/a".into(), data: None, version: -1 }).await;
    }
    // The server continues as long as there is room for replies.
    let (mut done, mut same) = (0, 0);
    while same < 100 {
        let now = version(&mut other, "/a").await;
        same = if now == done { same + 1 } else { 0 };
        done = now;
    }
    assert!((PIPE / 2..=PIPE + LIMIT).contains(&done), "{done} of {REQUESTS} requests were executed");
    for xid in 1..=REQUESTS {
        let (header, _) = greedy.reply().await.expect("the link stays open");
        assert_eq!((header.xid, header.code), (xid, Code::OK));
    }
    assert_eq!(version(&mut other, "/a").await, REQUESTS);
}

#[tokio::test(start_paused = true)]
async fn messages_held_over_the_limit_close_the_link_that_sends_them() {
    let warnings = Warnings::watch();
    let world = World::new(Server::builder().limits(Limits::default().held_bytes(3_000))).await;
    let (follower, dial) = world.follower(|follower| follower).await;
    let (mut greedy, mut other) = (dial.peer(10_000).await, dial.peer(10_000).await);
    follower.cut_off_holding();
    for n in 0..10 {
        greedy.send(Request::Create(node(&format!("/g{n}"), CreateMode::Persistent))).await;
    }
    assert!(greedy.is_closed().await);
    warnings.assert_about("held_bytes", 3_000);
    let held = follower.held_count();
    assert!((1..6).contains(&held), "{held}");
    other.get_data("/", false).await.expect("reads are still answered");
    follower.rejoin();
    assert_eq!(world.server.nodes().len(), held);
}
