//! How a client learns what its servers can do.

use docent::{CreateMode, ErrorKind, Mutex};
use docent_battery::{Backend, Dialect, Proxy, Rule, TestServer};
use docent_proto::OpCode;
use docent_tests::{builder, connect, soon, until};

/// Returns the number of requests with this operation that went through a proxy.
fn asked(proxy: &Proxy, op: OpCode) -> usize {
    proxy.trace().iter().filter(|frame| frame.is_request(op)).count()
}

fn links(proxy: &Proxy) -> u64 {
    proxy.trace().iter().map(|frame| frame.link + 1).max().unwrap_or(0)
}

async fn server(dialect: Dialect) -> (TestServer, Proxy) {
    let server = Backend::As(dialect).start().await;
    let proxy = server.proxy().await;
    (server, proxy)
}

#[tokio::test(start_paused = true)]
async fn a_keeper_costs_one_link_and_the_session_of_the_first_operation_is_kept() {
    let (server, proxy) = server(Dialect::Keeper2025).await;
    let client = builder(&server, proxy.connect_string()).connect().await.unwrap();
    let guard = soon(Mutex::new(&client, "/locks/a").unwrap().acquire()).await.unwrap();
    let session = client.session_id();
    client.create("/a/b/c", "1", CreateMode::Persistent).await.unwrap();
    client.who_am_i().await.unwrap_err();
    assert!(client.create("/t", "", CreateMode::Container).await.is_err());
    assert!(guard.is_held());
    assert_eq!(client.session_id(), session);
    assert_eq!((asked(&proxy, OpCode::CreateContainer), asked(&proxy, OpCode::Create2)), (1, 0));
    assert_eq!(links(&proxy), 2, "the server hangs up on the probe only");
    assert!(client.health().session_per_connection);
}

#[tokio::test(start_paused = true)]
async fn an_old_zookeeper_is_asked_once_for_each_operation_and_the_session_survives() {
    let (server, proxy) = server(Dialect::ZooKeeper34).await;
    let client = builder(&server, proxy.connect_string()).connect().await.unwrap();
    let session = client.session_id();
    for name in ["a", "b"] {
        let guard = soon(Mutex::new(&client, &format!("/locks/{name}")).unwrap().acquire()).await.unwrap();
        guard.release().await.unwrap();
        client.create(&format!("/deep/{name}"), "1", CreateMode::Persistent).await.unwrap();
    }
    assert_eq!(client.session_id(), session);
    assert!(asked(&proxy, OpCode::Create2) <= 2, "{}", asked(&proxy, OpCode::Create2));
    assert!(!client.health().unsupported.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_wrong_guess_about_a_server_that_lost_its_links_is_corrected() {
    let (server, proxy) = server(Dialect::ZooKeeper).await;
    connect(&server).await.create("/f", "", CreateMode::Persistent).await.unwrap();
    for _ in 0..2 {
        proxy.add(Rule::on(OpCode::Create2).reset_before());
    }
    let client = builder(&server, proxy.connect_string()).connect().await.unwrap();
    for name in ["a", "b", "c"] {
        match client.create(&format!("/f/{name}"), "1", CreateMode::Persistent).await {
            Ok(_) => {}
            Err(error) => assert_eq!(error.kind(), ErrorKind::OutcomeUnknown),
        }
    }
    let before = asked(&proxy, OpCode::Create2);
    client.create("/f/d", "1", CreateMode::Persistent).await.unwrap();
    assert_eq!(asked(&proxy, OpCode::Create2), before + 1);
    assert!(client.health().unsupported.is_empty());
}

#[tokio::test(start_paused = true)]
async fn an_upgraded_server_is_used_in_full_after_a_while() {
    let (server, proxy) = server(Dialect::ZooKeeper34).await;
    let client = builder(&server, proxy.connect_string()).connect().await.unwrap();
    client.create("/a/b", "1", CreateMode::Persistent).await.unwrap();
    assert!(!client.health().unsupported.is_empty());
    server.as_embedded().unwrap().set_dialect(Dialect::ZooKeeper);
    tokio::time::sleep(std::time::Duration::from_secs(601)).await;
    proxy.cut().await;
    proxy.heal().await.unwrap();
    client.create("/a/c", "1", CreateMode::Container).await.unwrap();
    assert!(client.health().unsupported.is_empty(), "{:?}", client.health().unsupported);
}

#[tokio::test(start_paused = true)]
async fn in_keeper_every_guard_goes_with_its_link_and_the_next_one_is_acquired_in_a_new_session() {
    let (server, proxy) = server(Dialect::Keeper2026).await;
    let client = builder(&server, proxy.connect_string()).connect().await.unwrap();
    let mutex = Mutex::new(&client, "/locks/a").unwrap();
    let guard = soon(mutex.acquire()).await.unwrap();
    let session = client.session_id();
    proxy.cut().await;
    proxy.heal().await.unwrap();
    soon(guard.lost()).await;
    drop(guard);
    until(async || client.session_id() != session && client.session_id().is_some()).await;
    soon(mutex.acquire()).await.unwrap().release().await.unwrap();
}
