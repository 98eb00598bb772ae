use super::bench::Scale;
use super::process::{Kind, Process};
use super::report::Report;
use anyhow::{Result, ensure};
use bytes::Bytes;
use docent_battery::RawClient;
use docent_proto::{Acl, Create, CreateMode, Request};
use std::time::Duration;

const NODES: usize = 100_000;
const NODE_BYTES: usize = 100;
/// Sessions that share the watches.
const WATCHERS: usize = 10;
/// Requests in one write.
const BATCH: usize = 500;
const TIMEOUT: Duration = Duration::from_secs(60);

/// Measures the memory of a server when idle, with nodes, and with a watch on each node.
pub(super) async fn measure(kind: Kind, scale: Scale, report: &mut Report) -> Result<()> {
    let server = Process::start(kind).await?;
    report.add("memory at rest, MB", kind, server.megabytes()?);
    let count = scale.of(NODES);

    let mut client = RawClient::open(server.address(), TIMEOUT).await?;
    let data = Bytes::from(vec![b'x'; NODE_BYTES]);
    let create = |path, data| Create::new(path, data, Acl::open(), CreateMode::Persistent, 0);
    client.call(Request::Create(create("/nodes".to_owned(), Bytes::new()))).await?;
    let creates = (0..count).map(|number| Request::Create(create(path(number), data.clone())));
    send_all(&mut client, creates).await?;
    report.add(&format!("memory, {count} nodes of {NODE_BYTES} bytes, MB"), kind, server.megabytes()?);

    let mut watchers = Vec::new();
    for watcher in 0..WATCHERS {
        let mut client = RawClient::open(server.address(), TIMEOUT).await?;
        let numbers = (0..count).skip(watcher).step_by(WATCHERS);
        let reads = numbers.map(|number| Request::GetData { path: path(number), watch: true });
        send_all(&mut client, reads).await?;
        watchers.push(client);
    }
    report.add(&format!("memory, with {count} watches on them, MB"), kind, server.megabytes()?);
    Ok(())
}

fn path(number: usize) -> String {
    format!("/nodes/node-{number:06}")
}

/// Sends requests in batches, and expects each to succeed.
async fn send_all(client: &mut RawClient, requests: impl Iterator<Item = Request>) -> Result<()> {
    let mut requests = requests.peekable();
    while requests.peek().is_some() {
        let batch: Vec<Request> = requests.by_ref().take(BATCH).collect();
        let sent = batch.len();
        client.send(batch).await?;
        for _ in 0..sent {
            let reply = client.reply().await?;
            ensure!(reply.response.is_some(), "refused: {:?}", reply.header);
        }
    }
    Ok(())
}
