//! Each limit, exceeded.

mod support;

use bytes::BytesMut;
use docent_proto::{Code, CreateMode, MultiOp, Request, Watches};
use docent_server::{Limits, Server};
use std::time::Duration;
use support::{Peer, fresh};

async fn limited(limits: Limits) -> Server {
    Server::builder().limits(limits).start().await.expect("there is a free port")
}

#[tokio::test]
async fn a_frame_over_the_limit_closes_the_link() {
    let server = limited(Limits::default().frame_bytes(1_000)).await;
    let mut peer = Peer::open(&server).await;
    peer.set_data("/", &[0; 900]).await.unwrap();
    peer.send_bytes(&1_001_i32.to_be_bytes()).await;
    assert!(peer.is_closed().await);
}

#[tokio::test]
async fn a_connection_over_the_limit_is_closed_until_another_ends() {
    let server = limited(Limits::default().connections(1)).await;
    let mut first = Peer::open(&server).await;
    assert!(Peer::handshake(&server, &fresh(10_000)).await.is_none());
    first.call(Request::CloseSession).await.unwrap();
    assert!(first.is_closed().await);
    while Peer::handshake(&server, &fresh(10_000)).await.is_none() {}
}

#[tokio::test]
async fn a_session_over_the_limit_is_refused_but_attaching_is_not() {
    let server = limited(Limits::default().sessions(1)).await;
    let first = Peer::open(&server).await;
    assert!(Peer::handshake(&server, &fresh(10_000)).await.is_none());
    assert_eq!(first.reattach(&server).await.session.session_id, first.session.session_id);
}

#[tokio::test]
async fn a_node_over_the_limit_is_refused_until_another_goes() {
    let server = limited(Limits::default().nodes(1)).await;
    let mut peer = Peer::open(&server).await;
    peer.create("/a", CreateMode::Persistent).await.unwrap();
    assert_eq!(peer.create("/b", CreateMode::Persistent).await, Err(Code::QUOTA_EXCEEDED));
    peer.delete("/a").await.unwrap();
    peer.create("/b", CreateMode::Persistent).await.unwrap();
}

#[tokio::test]
async fn bytes_over_the_limit_are_refused_and_smaller_data_is_not() {
    let server = limited(Limits::default().total_bytes(1_000)).await;
    let mut peer = Peer::open(&server).await;
    peer.create("/a", CreateMode::Persistent).await.unwrap();
    peer.set_data("/a", &[0; 900]).await.unwrap();
    assert_eq!(peer.set_data("/a", &[0; 1_000]).await, Err(Code::QUOTA_EXCEEDED));
    peer.set_data("/a", &[0; 800]).await.unwrap();
    peer.delete("/a").await.unwrap();
    let long = format!("/{}", "n".repeat(1_000));
    assert_eq!(peer.create(&long, CreateMode::Persistent).await, Err(Code::QUOTA_EXCEEDED));
}

#[tokio::test]
async fn watches_over_the_limit_are_refused_however_they_are_set() {
    let server = limited(Limits::default().watches_per_connection(2)).await;
    let mut peer = Peer::open(&server).await;
    assert_eq!(peer.exists("/a", true).await, Err(Code::NO_NODE));
    assert_eq!(peer.exists("/a", true).await, Err(Code::NO_NODE));
    peer.get_data("/", true).await.unwrap();
    assert_eq!(peer.exists("/b", true).await, Err(Code::QUOTA_EXCEEDED));
    assert_eq!(peer.exists("/b", false).await, Err(Code::NO_NODE));
    let watches = Watches { exist: vec!["/c".into()], ..Watches::default() };
    assert_eq!(peer.call(Request::SetWatches(watches)).await, Err(Code::QUOTA_EXCEEDED));
    assert_eq!(server.watch_count(), 2);
}

#[tokio::test]
async fn a_multi_read_over_the_limit_is_refused_as_a_whole() {
    let server = limited(Limits::default().reply_bytes(10_000)).await;
    let mut peer = Peer::open(&server).await;
    peer.set_data("/", &[0; 4_000]).await.unwrap();
    let read = |times| Request::MultiRead(vec![MultiOp::GetData { path: "/".into() }; times]);
    peer.call(read(2)).await.unwrap();
    assert_eq!(peer.call(read(3)).await, Err(Code::QUOTA_EXCEEDED));
}

#[tokio::test]
async fn a_link_that_never_asks_for_a_session_is_closed() {
    let server = limited(Limits::default().handshake(Duration::from_millis(20))).await;
    let mut silent = Peer::raw(&server).await;
    assert!(silent.is_closed().await);
}

#[tokio::test]
async fn a_client_that_does_not_read_is_not_answered_without_end() {
    let server = Server::start().await.unwrap();
    let (mut greedy, mut other) = (Peer::open(&server).await, Peer::open(&server).await);
    other.set_data("/", &vec![0; 500_000]).await.unwrap();
    let mut out = BytesMut::new();
    for xid in 1..=2_000 {
        docent_proto::RequestFrame { xid, request: Request::GetData { path: "/".into(), watch: false } }
            .encode(&mut out);
    }
    greedy.send_bytes(&out).await;
    // One gigabyte of answers is due. The link got stuck long before, others go on, and reading sets it free
    // again.
    other.call(Request::Sync { path: "/".into() }).await.unwrap();
    for xid in 1..=20 {
        let (header, body) = greedy.reply().await.unwrap();
        assert_eq!((header.xid, header.code), (xid, Code::OK));
        assert!(body.len() > 500_000);
    }
}
