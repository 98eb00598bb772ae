//! The kit for the tests of services: what its faults do to a client, and what it leaves behind.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod each_request;
mod fault_proxy;
mod memory_net;
mod texts;

use docent::Client;
use docent::testkit::FaultProxy;
use docent_battery::TestServer;
use docent_tests::builder;

/// A client below the test's own path, behind a proxy of its own.
async fn behind_proxy(server: &TestServer) -> (Client, FaultProxy) {
    let proxy = FaultProxy::start(server.address()).await.unwrap();
    (builder(server, proxy.connect_string()).connect().await.unwrap(), proxy)
}
