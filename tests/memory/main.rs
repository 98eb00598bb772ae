//! Heap memory per object, measured by counting the allocations of a separate process.

#![allow(clippy::unwrap_used, reason = "a test that cannot continue fails")]

use docent::Client;
use docent::discovery::{Instance, Registry};
use docent::server::Server;
use docent::testkit::eventually;
use docent_tests::{PATIENCE, soon};
use futures_util::future::try_join_all;
use std::process::Stdio;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::process::Command;

/// Returns the heap bytes per object, after the server has `watches` more watches than before.
async fn bytes(server: &Server, thing: &str, count: usize, watches: usize) -> usize {
    let before = server.watch_count();
    let mut command = Command::new(env!("CARGO_BIN_EXE_measured"));
    command.args([server.connect_string(), thing, &count.to_string()]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
    let mut process = command.spawn().unwrap();
    let mut says = BufReader::new(process.stdout.take().unwrap()).lines();
    assert_eq!(soon(says.next_line()).await.unwrap().as_deref(), Some("made"));
    eventually(PATIENCE, async || server.watch_count(), |now| *now >= before + watches).await.unwrap();
    process.stdin.take().unwrap().write_all(b"\n").await.unwrap();
    soon(says.next_line()).await.unwrap().unwrap().parse().unwrap()
}

#[tokio::test]
async fn an_idle_client_is_small() {
    let server = Server::start().await.unwrap();
    let bytes = bytes(&server, "client", 32, 0).await;
    assert!(bytes <= 17_000, "{bytes} bytes");
}

#[tokio::test]
async fn an_instance_in_a_view_is_small() {
    const COUNT: usize = 2_000;
    let server = Server::start().await.unwrap();
    let client = Client::connect(server.connect_string()).await.unwrap();
    let registry = Registry::new(&client, "/services").unwrap();
    let instance = || Instance::new("orders", "10.0.0.7", 8080).payload("a".to_owned());
    let _registered = try_join_all((0..COUNT).map(|_| registry.register(instance()))).await.unwrap();
    let bytes = bytes(&server, "viewed", COUNT, COUNT).await;
    assert!(bytes <= 1_600, "{bytes} bytes");
}
