use super::bench::Scale;
use super::process::{Kind, Process};
use super::report::Report;
use crate::clients::{Bare, Client};
use crate::session::{FOLDER, NODE, prepare};
use anyhow::Result;
use std::time::Instant;
use tokio::task::JoinSet;

/// Rounds before the first that counts, because a JVM that has just started compiles its code while it runs.
const WARM_UP_ROUNDS: u32 = 3;

/// Concurrent requests of several bare clients.
#[derive(Debug, Clone, Copy)]
struct Load {
    title: &'static str,
    request: Kinds,
    links: usize,
    /// Requests in flight on each link.
    in_flight: usize,
    /// Requests of each link in a full-length run.
    requests: usize,
}

#[derive(Debug, Clone, Copy)]
enum Kinds {
    Read,
    Create,
}

const LOADS: [Load; 6] = [
    load("reads, 1 in flight, 1/s", Kinds::Read, 1, 1, 5_000),
    load("reads, 16 in flight, 1/s", Kinds::Read, 1, 16, 40_000),
    load("reads, 16 × 32 in flight, 1/s", Kinds::Read, 16, 32, 6_000),
    load("creates, 1 in flight, 1/s", Kinds::Create, 1, 1, 3_000),
    load("creates, 16 in flight, 1/s", Kinds::Create, 1, 16, 15_000),
    load("creates, 16 × 32 in flight, 1/s", Kinds::Create, 16, 32, 1_500),
];

const fn load(title: &'static str, request: Kinds, links: usize, in_flight: usize, requests: usize) -> Load {
    Load { title, request, links, in_flight, requests }
}

/// Measures both servers in turns.
pub(super) async fn measure(rounds: u32, scale: Scale, report: &mut Report) -> Result<()> {
    let mut servers = Vec::new();
    for kind in Kind::BOTH {
        let server = Process::start(kind).await?;
        prepare(server.address()).await?;
        servers.push((kind, server));
    }
    for round in 0..WARM_UP_ROUNDS + rounds {
        eprintln!("measuring rates, round {} of {WARM_UP_ROUNDS} to warm up and {rounds}", round + 1);
        for load in LOADS {
            for (kind, server) in &servers {
                let rate = load.rate(server, scale).await?;
                if round >= WARM_UP_ROUNDS {
                    report.add(load.title, *kind, rate);
                }
            }
        }
        servers.reverse();
    }
    Ok(())
}

impl Load {
    /// Returns the requests per second.
    async fn rate(self, server: &Process, scale: Scale) -> Result<f64> {
        let address = server.address().to_string();
        let mut clients = Vec::new();
        for _ in 0..self.links {
            clients.push(Bare::connect(&address).await?);
        }
        let (started, count) = (Instant::now(), scale.of(self.requests));
        let running: JoinSet<_> = clients.into_iter().map(|client| self.send(client, count)).collect();
        let clients = running.join_all().await;
        let seconds = started.elapsed().as_secs_f64();
        for client in clients {
            client?.close().await?;
        }
        Ok((count * self.links) as f64 / seconds)
    }

    async fn send(self, mut client: Bare, count: usize) -> Result<Bare> {
        match self.request {
            Kinds::Read => client.get_many(NODE, count, self.in_flight).await?,
            Kinds::Create => client.create_many(&format!("{FOLDER}/crowd-"), count, self.in_flight).await?,
        }
        Ok(client)
    }
}
