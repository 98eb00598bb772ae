//! Sessions that are opened, resumed, moved and ended.

use crate::support::{Peer, fresh, kept_port};
use bytes::Bytes;
use docent_proto::{Acl, Code, CreateMode, EventKind, Request, Response, WatchEvent};
use docent_server::{Server, StartError};
use std::time::Duration;

#[tokio::test]
async fn a_timeout_is_granted_within_two_and_twenty_ticks() {
    let server = Server::builder().tick(Duration::from_secs(1)).start().await.unwrap();
    for (requested, granted) in
        [(-1, 2_000), (0, 2_000), (2_001, 2_001), (20_000, 20_000), (i32::MAX, 20_000)]
    {
        let peer = Peer::handshake(&server, &fresh(requested)).await.unwrap();
        assert_eq!(peer.session.timeout_ms, granted, "asked for {requested}");
    }
}

#[tokio::test]
async fn configured_session_timeouts_replace_those_made_of_ticks() {
    let (min, max) = (Duration::from_millis(100), Duration::from_millis(200));
    let server = Server::builder().session_timeouts(min, max).start().await.unwrap();
    assert_eq!(Peer::handshake(&server, &fresh(1)).await.unwrap().session.timeout_ms, 100);
    assert_eq!(Peer::handshake(&server, &fresh(1_000)).await.unwrap().session.timeout_ms, 200);
}

#[tokio::test]
async fn a_client_before_3_4_gets_an_answer_without_the_read_only_field() {
    let server = Server::start().await.unwrap();
    let mut request = fresh(10_000);
    assert_eq!(Peer::handshake(&server, &request).await.unwrap().session.read_only, Some(false));
    request.read_only = None;
    assert_eq!(Peer::handshake(&server, &request).await.unwrap().session.read_only, None);
}

#[tokio::test]
async fn a_session_moves_to_a_new_link_and_its_old_one_is_closed() {
    let server = Server::start().await.unwrap();
    let mut old = Peer::open(&server).await;
    old.create("/mine", CreateMode::Ephemeral).await.unwrap();
    old.get_data("/mine", true).await.unwrap();
    let mut new = old.reattach(&server).await;
    assert_eq!(new.session, old.session);
    assert!(old.is_closed().await);
    assert_eq!(server.watch_count(), 0, "watches end with their link");
    new.exists("/mine", false).await.unwrap();
}

#[tokio::test]
async fn a_wrong_password_or_id_is_answered_as_an_expired_session() {
    let server = Server::start().await.unwrap();
    let peer = Peer::open(&server).await;
    let mut wrong_password = peer.ticket();
    wrong_password.password = Bytes::from_static(&[7; 16]);
    let mut wrong_id = peer.ticket();
    wrong_id.session_id += 1;
    for request in [wrong_password, wrong_id] {
        let mut refused = Peer::handshake(&server, &request).await.unwrap();
        assert_eq!((refused.session.timeout_ms, refused.session.session_id), (0, 0));
        assert_eq!(refused.session.password, Bytes::from_static(&[0; 16]));
        assert!(refused.is_closed().await);
    }
    assert_eq!(server.sessions(), [peer.session.session_id]);
}

#[tokio::test]
async fn a_client_that_saw_newer_transactions_is_refused_without_a_reply() {
    let server = Server::start().await.unwrap();
    let mut peer = Peer::open(&server).await;
    let mut ahead = fresh(10_000);
    ahead.last_zxid_seen = server.zxid() + 1;
    assert!(Peer::handshake(&server, &ahead).await.is_none());
    let mut ticket = peer.ticket();
    ticket.last_zxid_seen = server.zxid() + 1;
    assert!(Peer::handshake(&server, &ticket).await.is_none());
    peer.call(Request::Ping).await.unwrap();
}

#[tokio::test]
async fn expiring_a_session_deletes_its_nodes_in_one_transaction_and_closes_its_link() {
    let server = Server::builder().journal(true).start().await.unwrap();
    let (mut owner, mut watcher) = (Peer::open(&server).await, Peer::open(&server).await);
    for path in ["/a", "/b"] {
        owner.create(path, CreateMode::Ephemeral).await.unwrap();
        watcher.exists(path, true).await.unwrap();
    }
    assert!(server.expire(owner.session.session_id));
    assert!(!server.expire(owner.session.session_id));
    for path in ["/a", "/b"] {
        assert_eq!(watcher.event().await, WatchEvent { kind: EventKind::Deleted, path: path.into() });
    }
    assert!(owner.is_closed().await);
    assert_eq!(owner.reattach(&server).await.session.session_id, 0);
    let journal = server.journal();
    let [.., end, first, second] = &journal[..] else { panic!("{journal:?}") };
    assert_eq!((end.zxid, first.zxid, second.zxid), (server.zxid(), server.zxid(), server.zxid()));
    assert_eq!(server.session(watcher.session.session_id).unwrap().events_sent, 2);
}

#[tokio::test]
async fn a_link_that_its_client_closes_is_removed() {
    let server = Server::start().await.unwrap();
    let peer = Peer::open(&server).await;
    let session = peer.session.session_id;
    drop(peer);
    let removed = async {
        while server.connection_count() > 0 {
            tokio::task::yield_now().await;
        }
    };
    crate::support::bounded(removed).await;
    assert!(!server.session(session).unwrap().attached);
}

#[tokio::test]
async fn dropped_links_leave_the_sessions_alive() {
    let server = Server::start().await.unwrap();
    let mut peer = Peer::open(&server).await;
    peer.create("/mine", CreateMode::Ephemeral).await.unwrap();
    server.drop_links();
    assert!(peer.is_closed().await);
    assert_eq!(server.connection_count(), 0);
    assert!(!server.session(peer.session.session_id).unwrap().attached);
    let mut back = peer.reattach(&server).await;
    back.exists("/mine", false).await.unwrap();
}

#[tokio::test]
async fn a_restarted_server_keeps_its_port_tree_and_sessions() {
    let server = Server::start().await.unwrap();
    let mut peer = Peer::open(&server).await;
    peer.create("/mine", CreateMode::Ephemeral).await.unwrap();
    server.stop_listening().await.unwrap();
    assert!(peer.is_closed().await);
    assert!(tokio::net::TcpStream::connect(server.local_addr()).await.is_err());
    server.listen_again().await.unwrap();
    let mut back = peer.reattach(&server).await;
    back.exists("/mine", false).await.unwrap();
    server.restart().await.unwrap();
    assert!(back.is_closed().await);
    back.reattach(&server).await.exists("/mine", false).await.unwrap();
}

#[tokio::test]
async fn stopping_and_dropping_a_server_close_its_links_and_free_its_port() {
    let (_kept, address) = kept_port();
    let server = Server::builder().bind(address).start().await.unwrap();
    let mut peer = Peer::open(&server).await;
    server.stop().await;
    assert!(peer.is_closed().await);
    let server = Server::builder().bind(address).start().await.unwrap();
    let mut peer = Peer::open(&server).await;
    drop(server);
    assert!(peer.is_closed().await);
}

#[tokio::test]
async fn a_remote_address_has_to_be_permitted() {
    let everywhere = "0.0.0.0:0".parse().unwrap();
    let refused = Server::builder().bind(everywhere).start().await;
    assert!(matches!(refused, Err(StartError::NotLoopback(address)) if address == everywhere));
    let server = Server::builder().bind(everywhere).allow_remote().start().await.unwrap();
    assert_ne!(server.local_addr().port(), 0);
}

#[tokio::test]
async fn a_port_in_use_is_an_error_that_names_it() {
    let server = Server::start().await.unwrap();
    let error = Server::builder().port(server.local_addr().port()).start().await.unwrap_err();
    assert!(error.to_string().contains(server.connect_string()), "{error}");
}

#[tokio::test]
async fn digest_credentials_grant_access_to_protected_nodes() {
    let server = Server::start().await.unwrap();
    let (mut owner, mut other) = (Peer::open(&server).await, Peer::open(&server).await);
    let auth =
        |scheme: &str| Request::Auth { scheme: scheme.into(), credentials: Bytes::from_static(b"u:p") };
    assert_eq!(owner.call(auth("digest")).await, Ok(Response::Empty));
    let mut private = crate::support::node("/private", CreateMode::Persistent);
    let creator = Acl { scheme: "auth".into(), id: "".into(), ..private.acl[0].clone() };
    private.acl = [creator].into();
    assert_eq!(other.call(Request::Create(private.clone())).await, Err(Code::INVALID_ACL));
    owner.call(Request::Create(private)).await.unwrap();
    owner.get_data("/private", false).await.unwrap();
    assert_eq!(other.get_data("/private", false).await, Err(Code::NO_AUTH));
    assert_eq!(other.call(auth("unheard-of")).await, Err(Code::AUTH_FAILED));
    assert!(other.is_closed().await);
}

#[tokio::test]
async fn neither_passwords_nor_data_are_in_debug_output() {
    let server = Server::start().await.unwrap();
    let mut peer = Peer::open(&server).await;
    peer.set_data("/", b"payload").await.unwrap();
    let session = server.session(peer.session.session_id).unwrap();
    let shown = format!("{server:?} {session:?} {:?}", server.node("/").unwrap());
    let password: &[u8] = &peer.session.password;
    assert!(!shown.contains("payload") && !shown.contains(&format!("{password:?}")), "{shown}");
}
