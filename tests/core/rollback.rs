//! Servers that were restored from an older snapshot.

use docent::client::{ClientBuilder, RollbackPolicy};
use docent::recipe::KeptNode;
use docent::{Client, ConnectionState, CreateMode, ErrorKind, Mutex};
use docent_battery::{Port, RealServer, ServerOptions};
use docent_tests::{soon, tick};
use std::ops::Range;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// Session timeout. A client notices a restore after two timeouts.
const TIMEOUT: Duration = Duration::from_secs(1);

fn settings(address: String) -> ClientBuilder {
    Client::builder(address).session_timeout(TIMEOUT).server_tick(tick())
}

/// Creates nodes and waits until all `clients` have seen them. A busy machine may expire the clients'
/// sessions, so a separate client writes. That client is closed when this returns.
async fn write(writer: ClientBuilder, numbers: Range<usize>, clients: &[&Client]) {
    let writer = soon(writer.connect()).await.unwrap();
    for n in numbers {
        soon(writer.create(&format!("/node-{n}"), "", CreateMode::Persistent)).await.unwrap();
    }
    soon(writer.close()).await;
    for client in clients {
        soon(async { while client.sync("/").await.is_err() {} }).await;
    }
}

/// Checks that a client with the default policy stops.
async fn stops(client: &Client) {
    let mut state = client.state();
    assert_eq!(soon(state.reached(ConnectionState::RolledBack)).await.unwrap().rollbacks, 1);
    assert_eq!(soon(client.get("/")).await.unwrap_err().kind(), ErrorKind::EnsembleRolledBack);
    soon(client.close()).await;
}

/// Checks that a client with the other policy starts afresh.
async fn starts_afresh(client: &Client, stranger: ClientBuilder) {
    let mut state = client.state();
    let after =
        state.wait_for(|connection| connection.rollbacks == 1 && *connection == ConnectionState::Connected);
    soon(after).await;
    assert_eq!(soon(client.exists("/node-9")).await.unwrap(), None);
    let guard = soon(Mutex::new(client, "/lock").unwrap().acquire()).await.unwrap();
    assert!(guard.fence_may_have_regressed());
    // Sessions that were never opened own nothing, so a third party's persistent node is not mistaken for
    // ours.
    let stranger = soon(stranger.connect()).await.unwrap();
    soon(stranger.create("/theirs", "", CreateMode::Persistent)).await.unwrap();
    let node = KeptNode::new(client, "/theirs", "").unwrap();
    assert_eq!(soon(node.present()).await.unwrap_err().kind(), ErrorKind::NodeExists);
    soon(node.remove()).await.unwrap();
    assert!(soon(stranger.exists("/theirs")).await.unwrap().is_some());
}

#[tokio::test]
async fn an_embedded_server_that_starts_empty_is_detected() {
    let port = Port::claim().unwrap();
    let address = port.address();
    // With a fixed seed, each server counts its transactions from 1.
    let start = || docent::server::Server::builder().seed(7).tick(tick()).port(address.port()).start();
    let server = start().await.unwrap();
    let stop = settings(address.to_string()).connect().await.unwrap();
    let afresh =
        settings(address.to_string()).on_rollback(RollbackPolicy::StartAfresh).connect().await.unwrap();
    let guard = soon(Mutex::new(&afresh, "/lock").unwrap().acquire()).await.unwrap();
    assert!(!guard.fence_may_have_regressed());
    drop(guard);
    write(settings(address.to_string()), 0..50, &[&stop, &afresh]).await;
    server.stop().await;
    let _server = start().await.unwrap();
    tokio::join!(stops(&stop), starts_afresh(&afresh, settings(address.to_string())));
}

#[tokio::test]
async fn an_embedded_server_that_replaces_another_strands_no_client() {
    let port = Port::claim().unwrap();
    let server = port.start_server().await.unwrap();
    let client = settings(port.connect_string()).connect().await.unwrap();
    write(settings(port.connect_string()), 0..10, &[&client]).await;
    let guard = soon(Mutex::new(&client, "/lock").unwrap().acquire()).await.unwrap();
    let (session, mut state) = (client.session_id(), client.state());
    server.stop().await;
    let _server = port.start_server().await.unwrap();
    soon(guard.lost()).await;
    let next = soon(Mutex::new(&client, "/lock").unwrap().acquire()).await.unwrap();
    assert!(client.session_id() != session && next.fence() > guard.fence());
    assert_eq!(soon(client.exists("/node-9")).await.unwrap(), None, "the tree must be new");
    assert_eq!(state.current().rollbacks, 0);
    soon(state.reached(ConnectionState::Connected)).await;
}

#[tokio::test]
#[ignore = "needs a real ZooKeeper: run `cargo xtask test`"]
async fn a_real_server_that_was_restored_from_an_older_snapshot_is_detected() {
    restored(ServerOptions::default(), settings).await;
}

#[tokio::test]
#[ignore = "needs a real ZooKeeper: run `cargo xtask test`"]
async fn a_restored_server_that_requires_credentials_is_detected() {
    let options = ServerOptions::default()
        .property("zookeeper.enforce.auth.enabled", "true")
        .property("zookeeper.enforce.auth.schemes", "digest");
    let with_credentials =
        |address: String| settings(address).auth_digest("user", "right").allow_plaintext_auth();
    restored(options, with_credentials).await;
}

async fn restored(options: ServerOptions, settings: impl Fn(String) -> ClientBuilder) {
    let server = RealServer::start_with(options.tick(tick())).await.unwrap();
    let copy = |from: &Path, to: &Path| {
        let _ = std::fs::remove_dir_all(to);
        assert!(Command::new("cp").arg("-a").args([from, to]).status().unwrap().success());
    };
    let folder = server.folder();
    let backup = folder.with_extension("backup");
    let address = server.address();
    let client = settings(address.to_string()).connect().await.unwrap();
    write(settings(address.to_string()), 0..5, &[&client]).await;
    server.stop();
    copy(folder, &backup);
    server.start_again().await.unwrap();
    soon(client.state().reached(ConnectionState::Connected)).await;
    let afresh =
        settings(address.to_string()).on_rollback(RollbackPolicy::StartAfresh).connect().await.unwrap();
    write(settings(address.to_string()), 5..50, &[&client, &afresh]).await;
    server.stop();
    copy(&backup, folder);
    std::fs::remove_dir_all(&backup).unwrap();
    server.start_again().await.unwrap();
    tokio::join!(stops(&client), starts_afresh(&afresh, settings(address.to_string())));
}
