//! Helpers of the tests of configuration.

use crate::limits::{Limits, in_range};
use docent::config::{Change, Snapshot};
use docent::{Client, Config, Subscription};
use docent_tests::soon;
use std::sync::Arc;

pub(crate) const PATH: &str = "/config/limits";

/// Returns a configuration whose values are from 1 to a million.
pub(crate) fn config(client: &Client) -> Config<Limits> {
    Config::builder(client, PATH).validate(in_range).build().unwrap()
}

/// Waits for the next change, which must be a value.
pub(crate) async fn next(subscription: &mut Subscription<Limits>) -> Arc<Snapshot<Limits>> {
    match soon(subscription.changed()).await {
        Some(Ok(Change::Value(snapshot))) => snapshot,
        other => panic!("expected a value, received {other:?}"),
    }
}

/// Waits until a subscription shows this value as received from the servers.
pub(crate) async fn until(subscription: &Subscription<Limits>, per_second: u32) {
    soon(async {
        while subscription.current().per_second != per_second || subscription.current().is_provisional() {
            docent_tests::pause().await;
        }
    })
    .await;
}

/// Waits until the staleness of a subscription is `stale`.
pub(crate) async fn until_stale<T: Send + Sync + 'static>(subscription: &Subscription<T>, stale: bool) {
    soon(async {
        while subscription.is_stale() != stale {
            docent_tests::pause().await;
        }
    })
    .await;
}
