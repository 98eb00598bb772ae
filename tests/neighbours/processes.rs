//! Processes of other frameworks, and of providers that Docent registers.

use docent::client::ParentKind;
use docent::{Client, CreateMode};
use docent_battery::TestServer;
use docent_battery::packages::Packages;
use docent_battery::peer::Peer;
use docent_tests::{SESSION, soon, tick};
use std::path::Path;
use tokio::process::Command;

/// Starts a program of this folder with the given packages: `PROGRAM SERVERS ROOT ARGUMENTS`.
pub(crate) async fn peer(
    packages: &Packages,
    program: &str,
    server: &TestServer,
    arguments: &[&str],
) -> Peer {
    let program = format!("{}/neighbours/{program}", env!("CARGO_MANIFEST_DIR"));
    let mut command = packages.command(Path::new(env!("CARGO_TARGET_TMPDIR")), &program).await.unwrap();
    command.args([&server.connect_string(), server.root()]).args(arguments);
    Peer::start(&mut command, packages.missing()).await
}

/// Starts a provider that Docent registers, with the scheme `protocol`.
pub(crate) async fn provider(server: &TestServer, number: i32, protocol: &str) -> Peer {
    let mut command = Command::new(env!("CARGO_BIN_EXE_provider"));
    command.args([&server.connect_string(), server.root()]);
    command.args([SESSION, tick()].map(|time| time.as_millis().to_string()));
    command.args([&number.to_string(), protocol]);
    Peer::start(&mut command, "cargo builds this program").await
}

/// Waits until the servers have checked for empty containers: a container that became empty just now is
/// deleted.
pub(crate) async fn until_containers_were_checked(client: &Client) {
    let containers = client.with_parents(ParentKind::Container);
    soon(containers.create("/empty/x", "", CreateMode::Persistent)).await.unwrap();
    soon(client.delete("/empty/x", None)).await.unwrap();
    soon(async { while client.exists("/empty").await.unwrap().is_some() {} }).await;
}
