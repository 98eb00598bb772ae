//! Servers that were restored from an older copy.

use docent::recipe::KeptNode;
use docent::{Client, ClientBuilder, ConnectionState, CreateMode, ErrorKind, Mutex, RollbackPolicy};
use docent_testkit::Backend;
use docent_tests::{soon, tick};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// A restore is noticed after two of them.
const TIMEOUT: Duration = Duration::from_secs(1);

fn settings(address: impl AsRef<str>) -> ClientBuilder {
    Client::builder(address).session_timeout(TIMEOUT).server_tick(tick())
}

async fn write(client: &Client, count: usize) {
    for n in 0..count {
        client.create(&format!("/node-{n}"), "", CreateMode::Persistent).await.unwrap();
    }
}

/// What a client with the default policy comes to.
async fn stops(client: &Client) {
    let mut state = client.state();
    assert_eq!(soon(state.reached(ConnectionState::RolledBack)).await.rollbacks, 1);
    assert_eq!(soon(client.get("/")).await.unwrap_err().kind(), ErrorKind::EnsembleRolledBack);
    soon(client.close()).await;
}

/// What a client that is to go on comes to.
async fn starts_afresh(client: &Client) {
    let mut state = client.state();
    let after =
        state.wait_for(|connection| connection.rollbacks == 1 && *connection == ConnectionState::Connected);
    soon(after).await;
    assert_eq!(soon(client.exists("/node-9")).await.unwrap(), None);
    let guard = soon(Mutex::new(client, "/lock").unwrap().acquire()).await.unwrap();
    assert!(guard.fence_may_have_regressed());
    // Sessions that were never opened own nothing: a stranger's persistent node is not taken for ours.
    client.create("/theirs", "", CreateMode::Persistent).await.unwrap();
    let node = KeptNode::new(client, "/theirs", "").unwrap();
    assert_eq!(soon(node.present()).await.unwrap_err().kind(), ErrorKind::NodeExists);
    soon(node.remove()).await.unwrap();
    assert!(client.exists("/theirs").await.unwrap().is_some());
}

#[tokio::test]
async fn an_embedded_server_that_begins_anew_is_found_out() {
    let server = docent::server::Server::builder().tick(tick()).start().await.unwrap();
    let address = server.local_addr();
    let stop = settings(address.to_string()).connect().await.unwrap();
    let go_on =
        settings(address.to_string()).on_rollback(RollbackPolicy::StartAfresh).connect().await.unwrap();
    let guard = soon(Mutex::new(&go_on, "/lock").unwrap().acquire()).await.unwrap();
    assert!(!guard.fence_may_have_regressed());
    drop(guard);
    write(&stop, 50).await;
    go_on.sync("/").await.unwrap();
    server.stop().await;
    let _server = docent::server::Server::builder().tick(tick()).port(address.port()).start().await.unwrap();
    tokio::join!(stops(&stop), starts_afresh(&go_on));
}

#[tokio::test]
#[ignore = "needs a real ZooKeeper: run `cargo xtask test`"]
async fn a_real_server_that_was_restored_from_an_older_copy_is_found_out() {
    let server = Backend::Real.start_own().await;
    let copy = |from: &Path, to: &Path| {
        let _ = std::fs::remove_dir_all(to);
        assert!(Command::new("cp").arg("-a").args([from, to]).status().unwrap().success());
    };
    let folder = server.as_real().unwrap().folder();
    let backup = folder.with_extension("backup");
    let client = settings(server.address().to_string()).connect().await.unwrap();
    write(&client, 5).await;
    server.stop().await;
    copy(folder, &backup);
    server.start_again().await;
    soon(client.state().reached(ConnectionState::Connected)).await;
    let go_on = settings(server.address().to_string())
        .on_rollback(RollbackPolicy::StartAfresh)
        .connect()
        .await
        .unwrap();
    for n in 5..50 {
        client.create(&format!("/node-{n}"), "", CreateMode::Persistent).await.unwrap();
    }
    go_on.sync("/").await.unwrap();
    server.stop().await;
    copy(&backup, folder);
    std::fs::remove_dir_all(&backup).unwrap();
    server.start_again().await;
    tokio::join!(stops(&client), starts_afresh(&go_on));
}
