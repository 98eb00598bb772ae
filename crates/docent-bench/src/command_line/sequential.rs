use anyhow::{Result, ensure};
use bytes::Bytes;
use docent_battery::RawClient;
use docent_proto::{Acl, Create, CreateMode, Request, Response};
use std::net::SocketAddr;
use std::process::Command;
use std::time::Duration;

/// Folder of the tickets.
const FOLDER: &str = "/bench/sequential";

/// Server of the program that waits for each reply.
#[derive(Debug, clap::Args)]
pub(crate) struct SequentialOptions {
    server: SocketAddr,
}

/// Holds a lock while `true` runs, as `consul lock` does with its calls: one after the other. Nobody else
/// stands in its line, and its tickets are as those of `docent lock`.
pub(crate) async fn sequential_lock(options: SequentialOptions) -> Result<()> {
    let mut client = RawClient::open(options.server, Duration::from_secs(20)).await?;
    let name = format!("{FOLDER}/lock-");
    let create = Create::new(name, Bytes::new(), Acl::open(), CreateMode::EphemeralSequential, 0);
    let Response::Created { path, .. } = client.call(Request::Create(create)).await? else {
        anyhow::bail!("a create was answered by something else");
    };
    client.call(Request::GetChildren { path: FOLDER.to_owned(), watch: false }).await?;
    ensure!(Command::new("true").status()?.success(), "`true` failed");
    client.call(Request::Delete { path, version: -1 }).await?;
    Ok(client.close().await?)
}
