//! Servers that were restored from an older snapshot.

use crate::limits::limits;
use crate::support::{config, next};
use docent::Client;
use docent::client::RollbackPolicy;
use docent::config::Change;
use docent_battery::Port;
use docent_tests::{PATIENCE, soon, tick};
use std::time::Duration;

#[tokio::test]
async fn values_of_restored_servers_are_accepted_and_distinguished() {
    let port = Port::claim().unwrap();
    // A restarted server counts its transactions from 1.
    let start = || docent::server::Server::builder().seed(7).tick(tick()).port(port.address().port()).start();
    let server = start().await.unwrap();
    let settings = || {
        let settings = Client::builder(port.address().to_string()).session_timeout(Duration::from_secs(1));
        settings.server_tick(tick()).operation_timeout(PATIENCE)
    };
    let client = settings().on_rollback(RollbackPolicy::StartAfresh).connect().await.unwrap();
    let operator = settings().connect().await.unwrap();
    for value in 1..=30 {
        soon(config(&operator).publish(&limits(value))).await.unwrap();
    }
    let mut subscription = soon(config(&client).subscribe()).await.unwrap();
    let before = subscription.current().revision().unwrap();
    server.stop().await;
    let _server = start().await.unwrap();
    let operator = settings().connect().await.unwrap();
    let published = soon(config(&operator).publish(&limits(7))).await.unwrap();
    assert!(published.revision().unwrap().mzxid < before.mzxid, "the new revision has a lower number");
    loop {
        match soon(subscription.changed()).await {
            // The restarted server had no value until this publish.
            Some(Ok(Change::Deleted)) => {}
            Some(Ok(Change::RolledBack)) => break,
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(next(&mut subscription).await.revision(), published.revision());
    soon(config(&operator).publish(&limits(8))).await.unwrap();
    assert_eq!(next(&mut subscription).await.per_second, 8);
}
