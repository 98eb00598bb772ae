//! Sessions that their client gave up.

use crate::{builder, connect};
use docent::client::ConnectionStatus;
use docent::recipe::KeptNode;
use docent::{Client, ConnectionState, CreateMode, LostReason, Mutex, Queue};
use docent_battery::{Backend, Proxy, RealServer, Rule, ServerOptions, TestServer, both_backends};
use docent_proto::{Code, OpCode};
use docent_tests::{PATIENCE, SHORT_SESSION, own_nodes, soon, tick, until};

both_backends! {
    async fn an_abandoned_session_is_ended_after_its_nodes_were_replaced(backend: Backend) {
        let server = backend.start().await;
        let (proxy, other) = (server.proxy().await, connect(&server).await);
        let client = builder(&server, proxy.connect_string()).session_timeout(SHORT_SESSION).connect().await.unwrap();
        let nodes: Vec<_> = (0..20).map(|n| KeptNode::new(&client, &format!("/n{n}"), "1").unwrap()).collect();
        for node in &nodes {
            soon(node.present()).await.unwrap();
        }
        // Includes the witness, by which the next session replaces the nodes.
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
        // Each node needs an attempt to create it, and a replacement of the existing node.
        assert!(answered.filter(|frame| frame.is_reply(OpCode::Multi)).count() >= 2 * nodes.len());
        for node in &nodes {
            let owner = || async { other.get(node.path()).await.unwrap().stat.owner };
            soon(async { while owner().await != client.session_id() {} }).await;
        }
    }
}

/// Starts a server that can deny a session, and a client whose session outlives every test.
async fn denying() -> (TestServer, Client) {
    let server = Backend::Memory.start().await;
    let client =
        builder(&server, server.connect_string()).session_timeout(PATIENCE * 2).connect().await.unwrap();
    (server, client)
}

/// Makes the server report that the client's session has expired, although the session still exists.
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
async fn nodes_of_a_session_that_a_server_forgot_are_named_until_it_ends() {
    let (server, client) = denying().await;
    let guard = soon(Mutex::new(&client, "/lock").unwrap().acquire()).await.unwrap();
    deny(&server, &client).await;
    assert_eq!(soon(guard.lost()).await, LostReason::SessionExpired);
    // The guard's work may still be stopping, so the session is not ended yet.
    let health = client.health();
    assert_eq!(health.lingering_nodes, [guard.path()]);
    assert!(health.to_string().contains(&guard.path()), "{health}");
    drop(guard);
    until(async || client.health().lingering_nodes.is_empty()).await;
    assert_eq!(Mutex::new(&client, "/lock").unwrap().participants().await.unwrap(), []);
}

#[tokio::test(start_paused = true)]
async fn a_waiting_ticket_of_a_forgotten_session_is_deleted_while_a_guard_keeps_the_session() {
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
    assert!(other.exists(&guard.path()).await.unwrap().is_some(), "the session must still be alive");
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
async fn an_ephemeral_node_of_unknown_outcome_is_re_created_once_its_session_ended() {
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
async fn a_close_answered_by_a_server_that_forgot_the_session_still_ends_it() {
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
    // The link is lost with the close. On the next link, the server reports that the session does not exist.
    assert!(server.as_embedded().unwrap().deny_session(session));
    proxy.heal().await.unwrap();
    let report = soon(shutdown).await.unwrap();
    assert!(report.is_clean(), "{report}");
    assert_eq!(other.exists("/mine").await.unwrap(), None);
}

/// Until a link is authenticated, it is attached to its session and accepts no requests.
#[tokio::test]
#[ignore = "needs a real ZooKeeper: run `cargo xtask test`"]
async fn an_abandoned_session_is_ended_on_servers_that_require_credentials() {
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
    // After a restart, sessions get their whole timeout again, which is longer than a busy machine needs to
    // end the session.
    server.stop();
    soon(client.state().reached(ConnectionState::Lost)).await;
    let before = proxy.trace().len();
    server.start_again().await.unwrap();
    let other = settings(server.connect_string()).connect().await.unwrap();
    soon(async { while other.exists("/mine").await.unwrap().is_some() {} }).await;
    // The servers end the session just before they reply.
    proxy.until(|trace| trace[before..].iter().any(|frame| frame.is_reply(OpCode::CloseSession))).await;
    let mut trace = proxy.trace();
    let farewells = trace.drain(before..).filter(|frame| frame.is_reply(OpCode::CloseSession));
    let farewells: Vec<_> = farewells.map(|frame| frame.code).collect();
    // A server that was just started may be so slow that the client sends the farewell again.
    assert!(farewells.iter().all(|code| *code == Some(Code::OK)), "{farewells:?}");
}
