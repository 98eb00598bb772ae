//! A read-only server, which emulates one that has lost its quorum.

#![allow(clippy::unwrap_used, reason = "a test that cannot continue fails")]

use crate::support::world::World;
use crate::support::{Peer, four_letter_word, fresh, node};
use docent_proto::{Acl, Code, ConnectRequest, CreateMode, EventKind, MultiOp, Request, Response};
use docent_server::Server;
use std::time::Duration;

fn read_only(timeout_ms: i32) -> ConnectRequest {
    ConnectRequest { read_only: Some(true), ..fresh(timeout_ms) }
}

#[tokio::test]
async fn only_clients_that_allow_read_only_are_served() {
    let server = Server::start().await.unwrap();
    let mut before = Peer::open(&server).await;
    let asked = Peer::handshake(&server, &read_only(10_000)).await.unwrap();
    assert_eq!(asked.session.read_only, Some(false), "the server is not read-only yet");
    server.set_read_only(true);
    assert!(before.is_closed().await);
    for read_only in [None, Some(false)] {
        let request = ConnectRequest { read_only, ..fresh(10_000) };
        assert!(Peer::handshake(&server, &request).await.is_none(), "{read_only:?}");
    }
    let peer = Peer::handshake(&server, &read_only(10_000)).await.unwrap();
    assert_eq!(peer.session.read_only, Some(true));
    // Sessions opened before the mode belong to the ensemble.
    let of_before = ConnectRequest { read_only: Some(true), ..before.ticket() };
    assert!(Peer::handshake(&server, &of_before).await.is_none());
    assert!(server.session(before.session.session_id).is_some());
    assert_eq!(four_letter_word(server.connect_string(), "isro").await, "ro");
    assert!(four_letter_word(server.connect_string(), "srvr").await.contains("Mode: read-only\n"));
    server.set_read_only(false);
    assert_eq!(four_letter_word(server.connect_string(), "isro").await, "rw");
    before.reattach(&server).await.create("/a", CreateMode::Ephemeral).await.expect("the session continues");
}

#[tokio::test]
async fn writes_and_syncs_are_refused_and_reads_answered() {
    let server = Server::start().await.unwrap();
    Peer::open(&server).await.create("/a", CreateMode::Persistent).await.unwrap();
    server.set_read_only(true);
    let zxid = server.zxid();
    let mut peer = Peer::handshake(&server, &read_only(10_000)).await.unwrap();
    let path = || "/a".to_owned();
    for request in [
        Request::Create(node("/b", CreateMode::Persistent)),
        Request::Create(node("/b", CreateMode::Ephemeral)),
        Request::Create(node("no path", CreateMode::Container)),
        Request::SetData { path: path(), data: None, version: 9 },
        Request::SetAcl { path: path(), acl: Acl::open(), version: -1 },
        Request::Delete { path: "/none".into(), version: -1 },
        Request::Multi(vec![MultiOp::Delete { path: path(), version: -1 }]),
        Request::Multi(Vec::new()),
        Request::Sync { path: path() },
    ] {
        let op = request.op();
        assert_eq!(peer.call(request).await, Err(Code::NOT_READ_ONLY), "{op:?}");
        assert_eq!(peer.last_zxid, zxid, "{op:?}");
    }
    assert_eq!(peer.call(Request::Ping).await, Ok(Response::Empty));
    peer.get_data("/a", true).await.unwrap();
    peer.exists("/b", true).await.unwrap_err();
    assert_eq!(peer.call(Request::CloseSession).await, Ok(Response::Empty));
    assert!(peer.is_closed().await);
    assert_eq!(server.zxid(), zxid, "a refused write used up a number");
    server.set_read_only(false);
    assert_eq!(server.nodes(), ["/a"]);
}

#[tokio::test]
async fn a_watch_reports_nothing_and_is_removed_with_the_mode() {
    let server = Server::start().await.unwrap();
    server.set_read_only(true);
    let mut peer = Peer::handshake(&server, &read_only(10_000)).await.unwrap();
    peer.exists("/b", true).await.unwrap_err();
    assert_eq!(server.watch_count(), 1);
    server.set_read_only(false);
    assert!(peer.is_closed().await);
    assert_eq!((server.watch_count(), server.session_count()), (0, 0));
    let expired = peer.reattach(&server).await;
    assert_eq!(expired.session.session_id, 0, "the local session must end with the mode");
    let mut peer = Peer::open(&server).await;
    peer.exists("/b", true).await.unwrap_err();
    peer.create("/b", CreateMode::Persistent).await.unwrap();
    assert_eq!(peer.event().await.kind, EventKind::Created);
}

#[tokio::test(start_paused = true)]
async fn sessions_of_before_do_not_expire_meanwhile_and_those_of_the_mode_do() {
    let world = World::new(Server::builder()).await;
    let before = world.peer(4_000).await;
    world.server.set_read_only(true);
    world.server.set_read_only(true);
    let local = world.dial.attach(&read_only(4_000)).await;
    let id = local.session.session_id;
    let again = world.dial.attach(&ConnectRequest { read_only: Some(true), ..local.ticket() }).await;
    assert_eq!(again.session.session_id, id, "a local session can move to another link");
    assert!(world.end_of(&local).await <= 8_000);
    world.at(3_600_000).await;
    assert_eq!(world.server.sessions(), [before.session.session_id]);
    world.server.set_read_only(false);
    let ended = world.end_of(&before).await;
    assert!((3_604_000..=3_608_000).contains(&ended), "{ended}: the mode must end with a full timeout");
}

#[tokio::test(start_paused = true)]
async fn followers_serve_no_client_meanwhile() {
    let world = World::new(Server::builder()).await;
    let (_follower, dial) = world.follower(|builder| builder).await;
    let mut peer = dial.peer(10_000).await;
    world.server.set_read_only(true);
    assert!(peer.is_closed().await);
    assert!(!dial.link().attach(&read_only(10_000)).await);
    world.server.set_read_only(false);
    let mut peer = dial.attach(&peer.ticket()).await;
    peer.create("/a", CreateMode::Persistent).await.unwrap();
}

#[tokio::test]
async fn the_saved_state_of_a_read_only_server_has_no_session_of_the_mode() {
    let folder = tempfile::TempDir::new().unwrap();
    let file = folder.path().join("state");
    let server = Server::builder().keep(&file).start().await.unwrap();
    let before = Peer::open(&server).await;
    server.set_read_only(true);
    Peer::handshake(&server, &read_only(10_000)).await.unwrap();
    assert_eq!(server.session_count(), 2);
    server.try_stop().await.unwrap();
    let server = Server::builder().keep(&file).start().await.unwrap();
    assert_eq!(server.sessions(), [before.session.session_id]);
    assert_eq!(server.session(before.session.session_id).unwrap().timeout, Duration::from_secs(10));
}
