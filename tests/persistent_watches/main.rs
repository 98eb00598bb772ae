//! Caches with persistent watches, and the views, groups and configuration folders that use them.

#![allow(clippy::unwrap_used, reason = "a test that cannot continue fails")]

mod apart;
#[path = "../core/children_cache.rs"]
mod children_cache;
#[path = "../core/children_cache_faults.rs"]
mod children_cache_faults;
mod cost;
mod fallback;
#[path = "../discovery/large.rs"]
mod large;
#[path = "../config/layers.rs"]
mod layers;
#[path = "../config/limits.rs"]
mod limits;
#[path = "../discovery/membership/mod.rs"]
mod membership;
mod mixed;
#[path = "../discovery/properties.rs"]
mod properties;
#[path = "../discovery/scene.rs"]
mod scene;
#[path = "../config/tree.rs"]
mod tree;
#[path = "../core/tree_cache.rs"]
mod tree_cache;
#[path = "../discovery/unreadable.rs"]
mod unreadable;
#[path = "../discovery/view.rs"]
mod view;
#[path = "../core/watches.rs"]
mod watches;

use docent::Client;
use docent::client::ClientBuilder;
use docent_battery::{TestServer, both_backends};

fn builder(server: &TestServer, connect_string: impl AsRef<str>) -> ClientBuilder {
    docent_tests::builder(server, connect_string).persistent_watches()
}

async fn connect(server: &TestServer) -> Client {
    builder(server, server.connect_string()).connect().await.unwrap()
}

/// True if caches use persistent watches. Each then has one watch at the server, which counts in both of its
/// tables.
const PERSISTENT: bool = true;
