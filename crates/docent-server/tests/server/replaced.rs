//! Servers that replace other servers on the same port.

#![allow(clippy::unwrap_used, reason = "a test that cannot continue fails")]

use crate::support::{Peer, fresh, kept_port};
use docent_proto::{ConnectRequest, CreateMode, Response};
use docent_server::{Builder, Server};
use std::net::SocketAddr;

async fn start(builder: Builder, address: SocketAddr) -> Server {
    builder.bind(address).start().await.unwrap()
}

/// Replaces a server, and returns the new one with the handshake of a client that used the old one.
async fn moved(builder: Builder) -> (Server, ConnectRequest) {
    let (_port, address) = kept_port();
    let old = start(builder.clone(), address).await;
    let mut peer = Peer::open(&old).await;
    for path in ["/a", "/b", "/c"] {
        peer.create(path, CreateMode::Persistent).await.unwrap();
    }
    let request = ConnectRequest {
        last_zxid_seen: peer.last_zxid,
        session_id: peer.session.session_id,
        password: peer.session.password.clone(),
        ..fresh(10_000)
    };
    old.stop().await;
    (start(builder, address).await, request)
}

#[tokio::test]
async fn a_client_of_the_previous_server_learns_that_its_session_expired() {
    let (server, request) = moved(Server::builder()).await;
    let mut expired = Peer::raw(&server).await;
    assert!(expired.attach(&request).await, "the reply must be an expired session, not a refusal");
    assert_eq!(expired.session.session_id, 0);
    let new_session = ConnectRequest { last_zxid_seen: request.last_zxid_seen, ..fresh(10_000) };
    let mut peer = Peer::handshake(&server, &new_session).await.expect("a new session is granted");
    assert!(peer.session.session_id > request.session_id, "session ids must not be reused");
    peer.create("/a", CreateMode::Persistent).await.unwrap();
    assert!(peer.last_zxid > request.last_zxid_seen);
}

#[tokio::test]
async fn with_a_seed_transactions_are_counted_from_1_and_such_a_client_is_refused() {
    let (server, request) = moved(Server::builder().seed(7)).await;
    assert_eq!(server.zxid(), 0);
    assert!(!Peer::raw(&server).await.attach(&request).await);
    let peer = Peer::open(&server).await;
    assert_eq!(server.zxid(), 1);
    assert!(peer.session.session_id > request.session_id);
}

#[tokio::test]
async fn transaction_numbers_stay_distinct_in_javascript() {
    const MAX_SAFE_INTEGER: i64 = (1 << 53) - 1;
    let (_port, address) = kept_port();
    let mut last = 0;
    for _ in 0..3 {
        let server = start(Server::builder(), address).await;
        let mut peer = Peer::open(&server).await;
        for data in [b"a", b"b"] {
            let Ok(Response::Stat(stat)) = peer.set_data("/", data).await else { panic!() };
            assert!((last + 1..MAX_SAFE_INTEGER).contains(&stat.mzxid), "{:#x} after {last:#x}", stat.mzxid);
            last = stat.mzxid;
        }
        server.stop().await;
    }
}
