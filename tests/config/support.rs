//! Helpers of the tests of configuration.

use docent::config::{Change, Snapshot};
use docent::{Client, Config, Subscription};
use docent_battery::TestServer;
use docent_tests::soon;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

pub(crate) const PATH: &str = "/config/limits";

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Limits {
    pub(crate) per_second: u32,
}

pub(crate) fn limits(per_second: u32) -> Limits {
    Limits { per_second }
}

/// Configuration whose values are from 1 to a million.
pub(crate) fn config(client: &Client) -> Config<Limits> {
    Config::builder(client, PATH).validate(in_range).build().unwrap()
}

pub(crate) fn in_range(limits: &Limits) -> Result<(), String> {
    match limits.per_second {
        1..=1_000_000 => Ok(()),
        other => Err(format!("per_second {other} must be from 1 to 1000000")),
    }
}

/// The data of a node for a value.
pub(crate) fn json(per_second: u32) -> String {
    format!("{{\"per_second\":{per_second}}}")
}

/// Waits for the next change, which must be a value.
pub(crate) async fn next(subscription: &mut Subscription<Limits>) -> Arc<Snapshot<Limits>> {
    match soon(subscription.changed()).await {
        Some(Ok(Change::Value(snapshot))) => snapshot,
        other => panic!("a value was expected, not {other:?}"),
    }
}

/// Waits until a subscription shows this value, and the servers told it.
pub(crate) async fn until(subscription: &Subscription<Limits>, per_second: u32) {
    soon(async {
        while subscription.current().per_second != per_second || subscription.current().is_provisional() {
            tokio::task::yield_now().await;
        }
    })
    .await;
}

/// Waits until a subscription is stale, or is not any more.
pub(crate) async fn until_stale<T: Send + Sync + 'static>(subscription: &Subscription<T>, stale: bool) {
    soon(async {
        while subscription.is_stale() != stale {
            tokio::task::yield_now().await;
        }
    })
    .await;
}

/// Number of watches at the server, where it can tell.
pub(crate) fn watches(server: &TestServer) -> Option<usize> {
    server.as_embedded().map(docent::server::Server::watch_count)
}
