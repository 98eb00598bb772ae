//! Limits on watches.

use super::{add_watch, limited};
use crate::support::Peer;
use crate::support::warnings::Warnings;
use docent_proto::{Code, CreateMode, Request, Watches};
use docent_server::Limits;
use std::collections::BTreeSet;

#[tokio::test]
async fn watches_over_the_limit_are_refused_however_they_are_set() {
    let warnings = Warnings::watch();
    let server = limited(Limits::default().watches_per_connection(2)).await;
    let mut peer = Peer::open(&server).await;
    assert_eq!(peer.exists("/a", true).await, Err(Code::NO_NODE));
    assert_eq!(peer.exists("/a", true).await, Err(Code::NO_NODE));
    peer.get_data("/", true).await.expect("the root exists");
    assert_eq!(peer.exists("/b", true).await, Err(Code::QUOTA_EXCEEDED));
    warnings.assert_about("watches_per_connection", 2);
    assert_eq!(peer.exists("/b", false).await, Err(Code::NO_NODE));
    let watches = Watches { exist: vec!["/c".into()], ..Watches::default() };
    assert_eq!(peer.call(Request::SetWatches(watches)).await, Err(Code::QUOTA_EXCEEDED));
    assert_eq!(peer.call(add_watch("/d")).await, Err(Code::QUOTA_EXCEEDED));
    assert_eq!(server.watch_count(), 2);
}

#[tokio::test]
async fn bytes_of_watches_over_the_limit_of_a_link_are_refused() {
    let warnings = Warnings::watch();
    let server = limited(Limits::default().watch_bytes_per_connection(10_000_000)).await;
    let mut peer = Peer::open(&server).await;
    let path = |n| format!("/{n}{}", "w".repeat(1_000_000));
    for n in 0..4 {
        assert_eq!(peer.exists(&path(n), true).await, Err(Code::NO_NODE));
    }
    for n in 4..8 {
        assert_eq!(peer.exists(&path(n), true).await, Err(Code::QUOTA_EXCEEDED));
    }
    let watches = Watches { exist: vec![path(9)], ..Watches::default() };
    assert_eq!(peer.call(Request::SetWatches(watches)).await, Err(Code::QUOTA_EXCEEDED));
    warnings.assert_about("watch_bytes_per_connection", 10_000_000);
    assert_eq!(server.watch_count(), 4);
    // A watch that has fired makes room.
    let ready = peer.create("/0", CreateMode::Persistent).await;
    assert!(ready.is_ok() && peer.create(&path(0), CreateMode::Persistent).await.is_ok());
    assert_eq!(peer.exists(&path(4), true).await, Err(Code::NO_NODE));
}

#[tokio::test]
async fn bytes_of_watches_over_the_limit_of_all_links_are_refused_until_a_link_ends() {
    let warnings = Warnings::watch();
    let server = limited(Limits::default().watch_bytes(10_000)).await;
    let (mut first, mut second) = (Peer::open(&server).await, Peer::open(&server).await);
    for n in 0..18 {
        first.exists(&format!("/{n}"), true).await.expect_err("the node does not exist");
    }
    second.exists("/0", true).await.expect_err("the node does not exist");
    for peer in [&mut first, &mut second] {
        for request in [add_watch("/x"), Request::Exists { path: "/x".repeat(1_000), watch: true }] {
            assert_eq!(peer.call(request).await, Err(Code::QUOTA_EXCEEDED));
        }
    }
    let peers: BTreeSet<String> =
        warnings.about("watch_bytes").into_iter().map(|fields| fields["peer"].clone()).collect();
    assert_eq!(peers.len(), 2);
    first.call(Request::CloseSession).await.expect("a session can close itself");
    second.call(add_watch("/x")).await.expect("there is room for the watch again");
}
