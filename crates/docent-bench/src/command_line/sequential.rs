use anyhow::{Result, ensure};
use bytes::Bytes;
use docent_battery::RawClient;
use docent_proto::{Acl, Create, CreateMode, Request, Response};
use std::net::SocketAddr;
use std::process::Command;
use std::time::Duration;

/// Folder of the tickets.
const FOLDER: &str = "/bench/sequential";

/// Options of the program that waits for each reply.
#[derive(Debug, clap::Args)]
pub(crate) struct SequentialOptions {
    server: SocketAddr,
}

/// Holds a lock while `true` runs, sending one request after the other as `consul lock` does. No other client
/// contends for the lock, and its tickets look like those of `docent lock`.
pub(crate) async fn sequential_lock(options: SequentialOptions) -> Result<()> {
    let mut client = RawClient::open(options.server, Duration::from_secs(20)).await?;
    let name = format!("{FOLDER}/lock-");
    let create = Create::new(name, Bytes::new(), Acl::open(), CreateMode::EphemeralSequential, 0);
    let Response::Created { path, .. } = client.call(Request::Create(create)).await? else {
        anyhow::bail!("the response to a create has the wrong type");
    };
    client.call(Request::GetChildren { path: FOLDER.to_owned(), watch: false }).await?;
    ensure!(Command::new("true").status()?.success(), "`true` failed");
    client.call(Request::Delete { path, version: -1 }).await?;
    Ok(client.close().await?)
}
