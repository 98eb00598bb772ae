//! Limits on nodes, their bytes and their access control lists.

use super::{acl, guarded, limited};
use crate::support::warnings::Warnings;
use crate::support::{Peer, node};
use docent_proto::{Code, CreateMode, MultiOp, Request, Response};
use docent_server::Limits;

#[tokio::test]
async fn a_node_over_the_limit_is_refused_until_another_is_deleted() {
    let warnings = Warnings::watch();
    let server = limited(Limits::default().nodes(1)).await;
    let mut peer = Peer::open(&server).await;
    peer.create("/a", CreateMode::Persistent).await.expect("one node is allowed");
    assert_eq!(peer.create("/b", CreateMode::Persistent).await, Err(Code::QUOTA_EXCEEDED));
    warnings.assert_about("nodes", 1);
    peer.delete("/a").await.expect("the node exists");
    peer.create("/b", CreateMode::Persistent).await.expect("there is room for a node again");
    let ops = ["/c", "/d"].map(|path| MultiOp::Create(node(path, CreateMode::Persistent)));
    let Ok(Response::Multi(results)) = peer.call(Request::Multi(ops.into())).await else {
        panic!("a multi reports its failure in the results")
    };
    assert_eq!(results[0], docent_proto::MultiResult::Failed(Code::QUOTA_EXCEEDED));
    assert_eq!(server.nodes(), ["/b"]);
}

#[tokio::test]
async fn bytes_over_the_limit_are_refused_and_smaller_data_is_not() {
    let warnings = Warnings::watch();
    let server = limited(Limits::default().total_bytes(1_000)).await;
    let mut peer = Peer::open(&server).await;
    peer.create("/a", CreateMode::Persistent).await.expect("the node fits");
    peer.set_data("/a", &[0; 900]).await.expect("the data fits");
    assert_eq!(peer.set_data("/a", &[0; 1_000]).await, Err(Code::QUOTA_EXCEEDED));
    warnings.assert_about("total_bytes", 1_000);
    peer.set_data("/a", &[0; 800]).await.expect("smaller data fits");
    peer.delete("/a").await.expect("the node exists");
    // A path is stored three times.
    let long = |length| format!("/{}", "n".repeat(length));
    assert_eq!(peer.create(&long(400), CreateMode::Persistent).await, Err(Code::QUOTA_EXCEEDED));
    peer.create(&long(300), CreateMode::Persistent).await.expect("the path fits");
}

#[tokio::test]
async fn access_control_lists_count_in_nodes_unless_they_are_open() {
    let server = limited(Limits::default().total_bytes(1_000)).await;
    let mut peer = Peer::open(&server).await;
    for n in 0..50 {
        peer.create(&format!("/open{n}"), CreateMode::Persistent).await.expect("the node fits");
        peer.delete(&format!("/open{n}")).await.expect("the node exists");
    }
    assert_eq!(peer.call(guarded("/a", 8)).await, Err(Code::QUOTA_EXCEEDED));
    peer.call(guarded("/a", 3)).await.expect("the list fits");
    assert_eq!(peer.call(guarded("/b", 3)).await, Err(Code::QUOTA_EXCEEDED));
    let set = |entries| Request::SetAcl { path: "/a".into(), acl: acl(entries), version: -1 };
    assert_eq!(peer.call(set(8)).await, Err(Code::QUOTA_EXCEEDED));
    peer.call(set(0)).await.expect("a shorter list fits");
    peer.call(guarded("/b", 3)).await.expect("there is room for the node again");
    for path in ["/a", "/b"] {
        peer.delete(path).await.expect("the node exists");
    }
    peer.call(guarded("/c", 5)).await.expect("the bytes of deleted nodes are free");
}

#[tokio::test]
async fn an_access_control_list_over_the_limit_is_refused() {
    let warnings = Warnings::watch();
    let server = limited(Limits::default().acl_bytes(1_000)).await;
    let mut peer = Peer::open(&server).await;
    peer.call(guarded("/a", 5)).await.expect("the list fits");
    assert_eq!(peer.call(guarded("/b", 50)).await, Err(Code::QUOTA_EXCEEDED));
    warnings.assert_about("acl_bytes", 1_000);
    let set = Request::SetAcl { path: "/a".into(), acl: acl(50), version: -1 };
    assert_eq!(peer.call(set).await, Err(Code::QUOTA_EXCEEDED));
}

#[tokio::test]
async fn an_identity_over_the_limit_fails_and_closes_the_link() {
    let warnings = Warnings::watch();
    let server = limited(Limits::default().auth_bytes_per_connection(1_000)).await;
    let mut peer = Peer::open(&server).await;
    let digest = |user: String| Request::Auth {
        scheme: "digest".into(),
        credentials: format!("{user}:secret").into_bytes().into(),
    };
    for _ in 0..100 {
        peer.call(digest("the same".into())).await.expect("repeated credentials count once");
    }
    for n in 0..3 {
        peer.call(digest(format!("user{n}"))).await.expect("the identity fits");
    }
    assert_eq!(peer.call(digest("u".repeat(1_000))).await, Err(Code::AUTH_FAILED));
    assert!(peer.is_closed().await);
    warnings.assert_about("auth_bytes_per_connection", 1_000);
}
