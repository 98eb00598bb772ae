//! Fate of a session that its client gave up.

use crate::{builder, connect};
use docent::client::ConnectionStatus;
use docent::recipe::KeptNode;
use docent::{Client, ConnectionState, CreateMode, LostReason, Mutex, Queue};
use docent_battery::{Backend, Proxy, RealServer, Rule, ServerOptions, TestServer, both_backends};
use docent_proto::{Code, OpCode};
use docent_tests::{PATIENCE, SHORT_SESSION, own_nodes, soon, tick, until};

both_backends! {
    async fn a_session_that_was_given_up_is_ended_after_its_nodes_were_replaced(backend: Backend) {
        let server = backend.start().await;
        let (proxy, other) = (server.proxy().await, connect(&server).await);
        let client = builder(&server, proxy.connect_string()).session_timeout(SHORT_SESSION).connect().await.unwrap();
        let nodes: Vec<_> = (0..20).map(|n| KeptNode::new(&client, &format!("/n{n}"), "1").unwrap()).collect();
        for node in &nodes {
            soon(node.present()).await.unwrap();
        }
        // The witness among them, by which the next session replaces them.
        until(async || own_nodes(&other).await.len() == 2).await;
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

/// A server that can deny a session, and a client whose session lasts longer than any test waits.
async fn denying() -> (TestServer, Client) {
    let server = Backend::Memory.start().await;
    let client =
        builder(&server, server.connect_string()).session_timeout(PATIENCE * 2).connect().await.unwrap();
    (server, client)
}

/// The server says that the client's session is over, which lives on.
async fn deny(server: &TestServer, client: &Client) -> i64 {
    let session = client.session_id().unwrap();
    let generation = client.state().current().generation;
    assert!(server.as_embedded().unwrap().deny_session(session));
    let next = |connection: &ConnectionStatus| {
        *connection == ConnectionState::Connected && connection.generation > generation
    };
    soon(client.state().wait_for(next)).await.unwrap();
    session
}

#[tokio::test(start_paused = true)]
async fn a_session_that_a_server_forgot_for_a_moment_is_ended_with_its_nodes() {
    let (server, client) = denying().await;
    let other = connect(&server).await;
    client.create("/mine", "", CreateMode::Ephemeral).await.unwrap();
    let session = deny(&server, &client).await;
    soon(async { while other.exists("/mine").await.unwrap().is_some() {} }).await;
    assert!(!server.as_embedded().unwrap().sessions().contains(&session));
    until(async || client.health().lingering_nodes.is_empty()).await;
}

#[tokio::test(start_paused = true)]
async fn nodes_of_a_session_that_a_server_forgot_are_named_until_it_is_over() {
    let (server, client) = denying().await;
    let guard = soon(Mutex::new(&client, "/lock").unwrap().acquire()).await.unwrap();
    deny(&server, &client).await;
    assert_eq!(soon(guard.lost()).await, LostReason::SessionExpired);
    // Its work may be stopping: so the session is not ended yet.
    let health = client.health();
    assert_eq!(health.lingering_nodes, [guard.path()]);
    assert!(health.to_string().contains(&guard.path()), "{health}");
    drop(guard);
    until(async || client.health().lingering_nodes.is_empty()).await;
    assert_eq!(Mutex::new(&client, "/lock").unwrap().participants().await.unwrap(), []);
}

#[tokio::test(start_paused = true)]
async fn a_waiters_ticket_of_a_session_that_a_server_forgot_is_deleted_while_a_guard_keeps_that() {
    let (server, client) = denying().await;
    let other = connect(&server).await;
    let guard = soon(Mutex::new(&client, "/lock").unwrap().acquire()).await.unwrap();
    let line = Mutex::new(&other, "/line").unwrap();
    let _held = soon(line.acquire()).await.unwrap();
    let waiting = tokio::spawn(Mutex::new(&client, "/line").unwrap().acquire());
    let session = client.session_id().unwrap();
    soon(async { while line.participants().await.unwrap().len() < 2 {} }).await;
    deny(&server, &client).await;
    soon(async {
        loop {
            let participants = line.participants().await.unwrap();
            if participants.len() == 2 && participants[1].session_id != session {
                return;
            }
        }
    })
    .await;
    assert!(other.exists(&guard.path()).await.unwrap().is_some(), "its session lives");
    waiting.abort();
}

#[tokio::test(start_paused = true)]
async fn an_item_of_a_session_that_a_server_forgot_goes_to_another_consumer() {
    let (server, client) = denying().await;
    let other = connect(&server).await;
    let (jobs, others) =
        (Queue::<u32>::new(&client, "/jobs").unwrap(), Queue::<u32>::new(&other, "/jobs").unwrap());
    jobs.put(&7).await.unwrap();
    let delivery = soon(jobs.take()).await.unwrap();
    deny(&server, &client).await;
    soon(delivery.lost()).await;
    drop(delivery);
    assert_eq!(*soon(others.take()).await.unwrap().item(), 7);
}

#[tokio::test(start_paused = true)]
async fn an_ephemeral_node_of_unknown_outcome_is_made_again_once_its_session_is_over() {
    let (server, client) = denying().await;
    let proxy = server.proxy().await;
    let client = {
        client.close().await;
        builder(&server, proxy.connect_string()).session_timeout(PATIENCE * 2).connect().await.unwrap()
    };
    let session = client.session_id().unwrap();
    let written = proxy.add(Rule::on(OpCode::Multi).cut_after());
    let create = tokio::spawn({
        let client = client.clone();
        async move { client.create("/mine", "", CreateMode::Ephemeral).await }
    });
    soon(written.fired()).await;
    assert!(server.as_embedded().unwrap().deny_session(session));
    proxy.heal().await.unwrap();
    let created = soon(create).await.unwrap().unwrap();
    assert_eq!(created.stat.owner, client.session_id());
    assert_ne!(created.stat.owner, Some(session));
}

#[tokio::test(start_paused = true)]
async fn a_close_that_is_answered_by_a_server_that_forgot_the_session_ends_it_all_the_same() {
    let (server, first) = denying().await;
    first.close().await;
    let (proxy, other) = (server.proxy().await, connect(&server).await);
    let client =
        builder(&server, proxy.connect_string()).session_timeout(PATIENCE * 2).connect().await.unwrap();
    client.create("/mine", "", CreateMode::Ephemeral).await.unwrap();
    let written = proxy.add(Rule::on(OpCode::CloseSession).hold());
    let session = client.session_id().unwrap();
    let shutdown = tokio::spawn(client.shutdown(PATIENCE));
    soon(written.fired()).await;
    // The link is lost with the close, and the next one hears that there is no such session.
    assert!(server.as_embedded().unwrap().deny_session(session));
    proxy.heal().await.unwrap();
    let report = soon(shutdown).await.unwrap();
    assert!(report.is_clean(), "{report}");
    assert_eq!(other.exists("/mine").await.unwrap(), None);
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
