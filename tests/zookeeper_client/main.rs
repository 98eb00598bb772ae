//! Tests of any session, on the sessions of the crate `zookeeper-client`.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

#[path = "../locks/cancel.rs"]
mod cancel;
#[path = "../core/children_cache.rs"]
mod children_cache;
#[path = "../core/close.rs"]
mod close;
#[path = "../locks/granted_less.rs"]
mod granted_less;
mod identity;
#[path = "../core/kept.rs"]
mod kept;
mod lease;
#[path = "../locks/loss.rs"]
mod loss;
#[path = "../core/node_cache.rs"]
mod node_cache;
#[path = "../core/operations.rs"]
mod operations;
#[path = "../locks/order.rs"]
mod order;
#[path = "../core/outcomes.rs"]
mod outcomes;
#[path = "../locks/reentry.rs"]
mod reentry;
#[path = "../locks/restart.rs"]
mod restart;
mod sasl;
#[path = "../locks/stall.rs"]
mod stall;
#[path = "../core/watches.rs"]
mod watches;

use docent::Client;
use docent::client::ClientBuilder;
use docent::zookeeper_client::ZookeeperClient;
use docent_battery::{TestServer, both_backends_in_real_time as both_backends};

fn builder(server: &TestServer, connect_string: impl AsRef<str>) -> ClientBuilder {
    docent_tests::builder(server, connect_string).zookeeper_client(ZookeeperClient::new())
}

async fn connect(server: &TestServer) -> Client {
    builder(server, server.connect_string()).connect().await.unwrap()
}

/// True where caches use persistent watches: one at the server for each, in both of its tables.
const PERSISTENT: bool = false;
