//! The sessions of the crate `zookeeper-client`: what the core crate requires of any session (operations,
//! outcomes, watches, end of session, loss of guards), and the specifics of these sessions. Recipes are
//! tested on Docent's own sessions.

#![allow(clippy::unwrap_used, reason = "a test that cannot continue fails")]

#[path = "../core/children_cache.rs"]
mod children_cache;
#[path = "../core/close.rs"]
mod close;
#[path = "../locks/granted_less.rs"]
mod granted_less;
mod identity;
mod lease;
#[path = "../locks/loss.rs"]
mod loss;
#[path = "../core/operations.rs"]
mod operations;
#[path = "../locks/order.rs"]
mod order;
#[path = "../core/outcomes.rs"]
mod outcomes;
mod sasl;
#[path = "../core/watches.rs"]
mod watches;

use docent::Client;
use docent::client::ClientBuilder;
use docent::zookeeper_client::ZookeeperClient;
use docent_battery::{TestServer, both_backends_in_real_time as both_backends};
use std::time::Duration;

/// A session timeout longer than the one that the test servers grant to every client.
const LEAST: Duration = Duration::from_secs(60);

fn builder(server: &TestServer, connect_string: impl AsRef<str>) -> ClientBuilder {
    docent_tests::builder(server, connect_string)
        .zookeeper_client(ZookeeperClient::new().least_timeout(LEAST))
}

async fn connect(server: &TestServer) -> Client {
    builder(server, server.connect_string()).connect().await.unwrap()
}

/// True if caches use persistent watches. Each then has one watch at the server, which counts in both of its
/// tables.
const PERSISTENT: bool = false;
