//! Fate of a session that its client gave up.

use crate::{builder, connect};
use docent::recipe::KeptNode;
use docent::{Client, ConnectionState, CreateMode};
use docent_battery::{Backend, Proxy, RealServer, ServerOptions, both_backends};
use docent_proto::{Code, OpCode};
use docent_tests::{PATIENCE, SHORT_SESSION, soon, tick};

both_backends! {
    async fn a_session_that_was_given_up_is_ended_after_its_nodes_were_replaced(backend: Backend) {
        let server = backend.start().await;
        let (proxy, other) = (server.proxy().await, connect(&server).await);
        let client = builder(&server, proxy.connect_string()).session_timeout(SHORT_SESSION).connect().await.unwrap();
        let nodes: Vec<_> = (0..20).map(|n| KeptNode::new(&client, &format!("/n{n}"), "1").unwrap()).collect();
        for node in &nodes {
            soon(node.present()).await.unwrap();
        }
        let markers = || other.children("/_docent/markers");
        soon(async { while !markers().await.is_ok_and(|markers| !markers.names.is_empty()) {} }).await;
        proxy.cut().await;
        let old = client.session_id().unwrap();
        let _alive = soon(server.front().sessions().keep_alive(old, server.address())).await.unwrap();
        soon(client.state().reached(ConnectionState::Lost)).await;
        let before = proxy.trace().len();
        proxy.heal().await.unwrap();
        proxy.until(|trace| trace[before..].iter().any(|frame| frame.op == Some(OpCode::CloseSession))).await;
        let trace = proxy.trace();
        let answered = trace[before..].iter().take_while(|frame| frame.op != Some(OpCode::CloseSession));
        // An attempt to create each, and a replacement of what is there.
        assert!(answered.filter(|frame| frame.is_reply(OpCode::Multi)).count() >= 2 * nodes.len());
        for node in &nodes {
            let owner = || async { other.get(node.path()).await.unwrap().stat.owner };
            soon(async { while owner().await != client.session_id() {} }).await;
        }
    }
}

/// Before it is authenticated a link is attached to its session and takes no request.
#[tokio::test]
#[ignore = "needs a real ZooKeeper: run `cargo xtask test`"]
async fn a_session_that_was_given_up_is_ended_where_nothing_is_taken_without_credentials() {
    let options = ServerOptions::default()
        .property("zookeeper.enforce.auth.enabled", "true")
        .property("zookeeper.enforce.auth.schemes", "digest");
    let server = RealServer::start_with(options).await.unwrap();
    let proxy = Proxy::start(server.address()).await.unwrap();
    let settings = |connect_string: String| {
        let settings = Client::builder(connect_string).auth_digest("user", "right").allow_plaintext_auth();
        settings.session_timeout(SHORT_SESSION * 4).server_tick(tick()).operation_timeout(PATIENCE)
    };
    let client = settings(proxy.connect_string()).connect().await.unwrap();
    soon(client.create("/mine", "", CreateMode::Ephemeral)).await.unwrap();
    // Sessions have their whole timeout again after a restart, longer than a busy machine needs to end it.
    server.stop();
    soon(client.state().reached(ConnectionState::Lost)).await;
    let before = proxy.trace().len();
    server.start_again().await.unwrap();
    let other = settings(server.connect_string()).connect().await.unwrap();
    soon(async { while other.exists("/mine").await.unwrap().is_some() {} }).await;
    // The servers have ended it a moment before they say so.
    proxy.until(|trace| trace[before..].iter().any(|frame| frame.is_reply(OpCode::CloseSession))).await;
    let mut trace = proxy.trace();
    let farewells = trace.drain(before..).filter(|frame| frame.is_reply(OpCode::CloseSession));
    let farewells: Vec<_> = farewells.map(|frame| frame.code).collect();
    // A server that has just been started may be so slow that the farewell is said again.
    assert!(farewells.iter().all(|code| *code == Some(Code::OK)), "{farewells:?}");
}
