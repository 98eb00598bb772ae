//! Servers that know less than the current ZooKeeper.

use crate::support::{Peer, four_letter_word, node};
use docent_proto::{
    Code, Create, CreateKind, CreateMode, MultiOp, OpCode, Request, Response, Stat, WatchKind,
};
use docent_server::{Dialect, Server};

async fn server(dialect: Dialect) -> Server {
    Server::builder().dialect(dialect).start().await.expect("a port is free on loopback")
}

fn requests() -> Vec<Request> {
    let ttl = Create {
        flags: CreateMode::PersistentTtl.flags(),
        kind: CreateKind::Ttl(1_000),
        ..node("/t", CreateMode::Persistent)
    };
    vec![
        Request::Create(node("/with_stat", CreateMode::Persistent)),
        Request::Create(node("/container", CreateMode::Container)),
        Request::Create(ttl),
        Request::MultiRead(vec![MultiOp::GetData { path: "/".into() }]),
        Request::RemoveWatches { path: "/".into(), kind: WatchKind::Any },
        Request::CheckWatches { path: "/".into(), kind: WatchKind::Any },
        Request::AddWatch { path: "/".into(), mode: docent_proto::WatchMode::Persistent },
        Request::GetEphemerals { prefix: "/".into() },
        Request::GetAllChildrenNumber { path: "/".into() },
        Request::WhoAmI,
    ]
}

/// Returns the operations that a dialect does not know, which it must refuse in its own way.
async fn refused(dialect: Dialect) -> Vec<OpCode> {
    let server = server(dialect).await;
    let mut refused = Vec::new();
    for request in requests() {
        let op = request.op();
        let mut peer = Peer::open(&server).await;
        peer.send(request).await;
        match peer.reply().await {
            None => {
                assert!(!dialect.restores_sessions(), "{dialect}: only Keeper hangs up on {op:?}");
                refused.push(op);
            }
            Some((header, _)) if header.code == Code::UNIMPLEMENTED && op != OpCode::CreateTtl => {
                assert!(dialect.restores_sessions(), "{dialect}: Keeper answers nothing to {op:?}");
                assert!(peer.is_closed().await);
                refused.push(op);
            }
            Some(_) => {}
        }
    }
    refused
}

#[tokio::test]
async fn each_dialect_refuses_the_operations_that_it_does_not_know() {
    use OpCode::*;
    let new = [MultiRead, AddWatch, GetEphemerals, GetAllChildrenNumber, WhoAmI];
    assert_eq!(refused(Dialect::ZooKeeper).await, []);
    assert_eq!(refused(Dialect::ZooKeeper35).await, new);
    let keeper = [GetEphemerals, GetAllChildrenNumber, WhoAmI];
    assert_eq!(refused(Dialect::Keeper2026).await, keeper);
    let creates = [Create2, CreateContainer, CreateTtl];
    assert_eq!(refused(Dialect::Keeper2025).await, [&creates[..], &keeper].concat());
    let mut oldest = refused(Dialect::ZooKeeper34).await;
    oldest.sort_by_key(|op| *op as i32);
    let expected = [Create2, CheckWatches, RemoveWatches, CreateContainer, MultiRead];
    assert_eq!(oldest, [&expected[..], &[GetEphemerals, GetAllChildrenNumber, AddWatch, WhoAmI]].concat());
}

#[tokio::test]
async fn keeper_opens_a_new_session_for_each_link_and_keeps_the_old_one_until_it_expires() {
    let server = server(Dialect::Keeper2025).await;
    let mut old = Peer::open(&server).await;
    old.call(Request::Create(Create { kind: CreateKind::Plain, ..node("/mine", CreateMode::Ephemeral) }))
        .await
        .unwrap();
    assert_eq!((old.session.password.as_ref(), old.session.read_only), (&[0; 16][..], None));
    let mut new = old.reattach(&server).await;
    assert_ne!(new.session.session_id, old.session.session_id);
    new.exists("/mine", false).await.unwrap();
    old.exists("/mine", false).await.expect("the old link keeps its session");
}

#[tokio::test]
async fn a_multi_with_an_unknown_create_is_refused_as_a_whole() {
    let ops = || Request::Multi(vec![MultiOp::Create(node("/a", CreateMode::Persistent))]);
    let old = server(Dialect::ZooKeeper34).await;
    assert_eq!(Peer::open(&old).await.call(ops()).await, Err(Code::MARSHALLING_ERROR));
    let keeper = server(Dialect::Keeper2025).await;
    let mut peer = Peer::open(&keeper).await;
    peer.send(ops()).await;
    assert!(peer.is_closed().await);
    assert_eq!(keeper.node_count(), old.node_count());
}

#[tokio::test]
async fn keeper_of_2026_shows_an_owner_of_containers() {
    let server = server(Dialect::Keeper2026).await;
    let mut peer = Peer::open(&server).await;
    let create = Request::Create(node("/c", CreateMode::Container));
    let Ok(Response::Created { stat: Some(stat), .. }) = peer.call(create).await else { panic!() };
    let of = |stat: &Stat| stat.ephemeral_owner;
    assert_eq!(of(&stat), i64::MIN);
    let Ok(Response::Stat(stat)) = peer.exists("/c", false).await else { panic!() };
    assert_eq!(of(&stat), i64::MIN);
    let Ok(Response::Stat(stat)) = peer.exists("/", false).await else { panic!() };
    assert_eq!(of(&stat), 0);
}

#[tokio::test]
async fn the_words_name_the_software_and_its_version() {
    for (dialect, name) in [
        (Dialect::ZooKeeper, "Zookeeper version: 3.8."),
        (Dialect::ZooKeeper34, "Zookeeper version: 3.4."),
        (Dialect::Keeper2025, "ClickHouse Keeper version: v25."),
    ] {
        let server = server(dialect).await;
        let answer = four_letter_word(server.connect_string(), "srvr").await;
        assert!(answer.starts_with(name), "{answer}");
    }
}

#[tokio::test]
async fn an_upgraded_server_answers_what_it_refused_before() {
    let server = server(Dialect::Keeper2025).await;
    let mut peer = Peer::open(&server).await;
    server.set_dialect(Dialect::Keeper2026);
    peer.create("/a", CreateMode::Persistent).await.unwrap();
}
