use super::bench::Scale;
use super::process::{Kind, Process};
use super::report::Report;
use anyhow::{Result, ensure};
use bytes::Bytes;
use docent_battery::RawClient;
use docent_proto::{Acl, Create, CreateMode, Request, Response};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

const SESSIONS: usize = 10_000;
/// Longer than opening all sessions takes.
const TIMEOUT: Duration = Duration::from_secs(30);
/// Parent of the nodes that the sessions own, one per session.
const FOLDER: &str = "/owned";

/// Measures the memory of a server with many connected sessions, and their simultaneous expiry.
pub(super) async fn measure(kind: Kind, scale: Scale, report: &mut Report) -> Result<()> {
    let server = Process::start(kind).await?;
    let mut bystander = RawClient::open(server.address(), Duration::from_secs(60)).await?;
    bystander.call(create(FOLDER.to_owned(), CreateMode::Persistent)).await?;

    let (count, started) = (scale.of(SESSIONS), Instant::now());
    let mut clients = open(server.address(), count).await?;
    report.add(&format!("{count} sessions opened, s"), kind, started.elapsed().as_secs_f64());
    report.add(&format!("memory, {count} sessions, MB"), kind, server.megabytes()?);

    touch(&mut clients).await?;
    drop(clients);
    let end = End::watched(&mut bystander, count).await?;
    report.add(&format!("{count} sessions expired, s"), kind, end.took.as_secs_f64());
    report.add("slowest read meanwhile, ms", kind, end.slowest_read.as_secs_f64() * 1e3);
    Ok(())
}

/// Opens sessions with an ephemeral node each.
async fn open(server: SocketAddr, count: usize) -> Result<Vec<RawClient>> {
    let mut clients = Vec::with_capacity(count);
    for number in 0..count {
        let mut client = RawClient::open(server, TIMEOUT).await?;
        client.send([create(format!("{FOLDER}/{number}"), CreateMode::Ephemeral)]).await?;
        clients.push(client);
    }
    for client in &mut clients {
        let reply = client.reply().await?;
        ensure!(reply.response.is_some(), "refused: {:?}", reply.header);
    }
    Ok(clients)
}

/// Sends a request in all sessions at about the same time, so their timeouts end together.
async fn touch(clients: &mut [RawClient]) -> Result<()> {
    for client in &mut *clients {
        client.send([children_count()]).await?;
    }
    for client in clients {
        client.reply().await?;
    }
    Ok(())
}

/// Expiry of all sessions, as seen by a client that only reads.
#[derive(Debug)]
struct End {
    /// Time from the first deleted node to the last.
    took: Duration,
    slowest_read: Duration,
}

impl End {
    async fn watched(bystander: &mut RawClient, count: usize) -> Result<Self> {
        let (mut first, mut slowest_read) = (None, Duration::ZERO);
        loop {
            let start = Instant::now();
            let remaining = remaining_nodes(bystander).await?;
            if remaining < count {
                let first = *first.get_or_insert(start);
                slowest_read = slowest_read.max(start.elapsed());
                if remaining == 0 {
                    return Ok(Self { took: first.elapsed(), slowest_read });
                }
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
}

async fn remaining_nodes(bystander: &mut RawClient) -> Result<usize> {
    match bystander.call(children_count()).await? {
        Response::Stat(stat) => Ok(usize::try_from(stat.num_children)?),
        other => anyhow::bail!("unexpected response {other:?}"),
    }
}

fn children_count() -> Request {
    Request::Exists { path: FOLDER.to_owned(), watch: false }
}

fn create(path: String, mode: CreateMode) -> Request {
    Request::Create(Create::new(path, Bytes::new(), Acl::open(), mode, 0))
}
