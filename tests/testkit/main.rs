//! The test kit for services: effects of its faults on a client, and cleanup.

#![allow(clippy::unwrap_used, reason = "a test that cannot continue fails")]

mod each_request;
mod fault_proxy;
mod memory_net;
mod texts;

use docent::Client;
use docent::testkit::FaultProxy;
use docent_battery::TestServer;
use docent_tests::builder;

/// Returns a client below the test's own path, behind its own proxy.
async fn behind_proxy(server: &TestServer) -> (Client, FaultProxy) {
    let proxy = FaultProxy::start(server.address()).await.unwrap();
    (builder(server, proxy.connect_string()).connect().await.unwrap(), proxy)
}
