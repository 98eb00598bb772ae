//! Sessions: their threads, their servers, their health and their end.

use docent::{Client, ConnectionState, CreateMode, ErrorKind, Mutex};
use docent_battery::{Backend, both_backends};
use docent_tests::{SESSION, SHORT_SESSION, builder, connect, soon, tick};
use std::time::Duration;

both_backends! {
    async fn new_servers_take_over_the_session(backend: Backend) {
        let server = backend.start().await;
        let (old, new) = (server.proxy().await, server.proxy().await);
        let client = builder(&server, old.connect_string()).connect().await.unwrap();
        let (session, guard) = (client.session_id(), soon(Mutex::new(&client, "/lock").unwrap().acquire()).await.unwrap());
        client.update_servers(&new.connect_string()).unwrap();
        new.until(|trace| !trace.is_empty()).await;
        soon(client.sync("/")).await.unwrap();
        assert_eq!(client.session_id(), session);
        assert!(guard.is_held());
        let error = client.update_servers("host:1/elsewhere").unwrap_err();
        assert!(error.to_string().contains("/elsewhere"), "{error}");
    }

    async fn health_reports_state_lease_guards_and_the_last_error(backend: Backend) {
        let server = backend.start().await;
        let proxy = server.proxy().await;
        let client = builder(&server, proxy.connect_string()).connect().await.unwrap();
        assert_eq!((client.health().lease_left, client.health().guards), (None, 0));
        let guard = soon(Mutex::new(&client, "/lock").unwrap().acquire()).await.unwrap();
        let node = docent::recipe::KeptNode::new(&client, "/node", "").unwrap();
        soon(node.present()).await.unwrap();
        let health = client.health();
        assert_eq!(health.connection, ConnectionState::Connected);
        assert!(health.lease_left.is_some_and(|left| left < SESSION));
        assert_eq!((health.guards, health.missing_nodes.len(), health.last_error), (1, 0, None));
        proxy.cut().await;
        client.state().reached(ConnectionState::Suspended).await;
        let refused = async {
            while !client.health().last_error.is_some_and(|error| error.contains("refused")) {
                docent_tests::pause().await;
            }
        };
        soon(refused).await;
        drop(guard);
        assert_eq!(client.health().guards, 0);
    }

    async fn an_abandoned_session_is_ended_on_a_separate_link(backend: Backend) {
        let server = backend.start().await;
        let (proxy, other) = (server.proxy().await, connect(&server).await);
        let client = builder(&server, proxy.connect_string()).session_timeout(SHORT_SESSION).connect().await.unwrap();
        client.create("/ephemeral", "", CreateMode::Ephemeral).await.unwrap();
        let guard = soon(Mutex::new(&client, "/lock").unwrap().acquire()).await.unwrap();
        let session = client.session_id().unwrap();
        proxy.cut().await;
        // Another link keeps the session alive at the servers.
        let _kept = soon(server.front().sessions().keep_alive(session, server.address())).await.unwrap();
        soon(client.state().reached(ConnectionState::Lost)).await;
        proxy.heal().await.unwrap();
        soon(client.state().reached(ConnectionState::Connected)).await;
        // While a guard of the session exists, the guard's work may not have stopped.
        assert!(!guard.is_held());
        other.sync("/").await.unwrap();
        assert!(other.exists("/ephemeral").await.unwrap().is_some());
        drop(guard);
        soon(async { while other.exists("/ephemeral").await.unwrap().is_some() {} }).await;
    }
}

#[tokio::test]
async fn servers_of_another_chroot_are_refused() {
    let server = Backend::Embedded.start().await;
    let client = Client::connect(format!("{}/shop", server.connect_string())).await.unwrap();
    client.update_servers(&format!("{}/shop", server.connect_string())).unwrap();
    client.update_servers(&server.connect_string()).unwrap();
    assert!(client.update_servers(&format!("{}/sho", server.connect_string())).is_err());
}

/// Blocks the runtime for longer than a lease and checks which client still has its lock.
async fn only_a_dedicated_thread_keeps_locks(address: String) {
    // Up to four seconds may pass between two heartbeats. A busy machine does not pause a thread for that
    // long.
    let builder =
        Client::builder(address).namespace("/dedicated").session_timeout(SESSION).server_tick(tick());
    let dedicated = builder.clone().dedicated_thread().connect().await.unwrap();
    let shared = builder.connect().await.unwrap();
    let kept = soon(Mutex::new(&dedicated, "/a").unwrap().acquire()).await.unwrap();
    let starved = soon(Mutex::new(&shared, "/b").unwrap().acquire()).await.unwrap();
    while starved.is_held() {
        std::thread::sleep(Duration::from_millis(10));
    }
    assert!(kept.is_held());
    soon(kept.release()).await.unwrap();
    soon(dedicated.close()).await;
    assert_eq!(dedicated.get("/").await.unwrap_err().kind(), ErrorKind::Closed);
}

#[test]
fn a_dedicated_thread_keeps_locks_while_the_runtime_is_blocked_on_the_embedded_server() {
    let servers = tokio::runtime::Runtime::new().unwrap();
    let server = servers.block_on(docent::server::Server::builder().tick(tick()).start()).unwrap();
    let blocked = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    blocked.block_on(only_a_dedicated_thread_keeps_locks(server.connect_string().to_owned()));
}

#[tokio::test]
#[ignore = "needs a real ZooKeeper: run `cargo xtask test`"]
async fn a_dedicated_thread_keeps_locks_while_the_runtime_is_blocked_on_a_real_one() {
    // Bypasses the proxy, which also runs on the blocked runtime.
    let address = Backend::Real.start().await.address().to_string();
    only_a_dedicated_thread_keeps_locks(address).await;
}
