use super::way::Way;
use crate::samples::Samples;
use crate::session::Server;
use anyhow::Result;
use bytes::Bytes;
use docent_battery::RawClient;
use docent_proto::{Acl, Create, CreateMode, Request};
use std::net::SocketAddr;
use std::time::Duration;

/// Rounds before the first round that counts.
const WARM_UP_ROUNDS: u32 = 3;

/// Settings of the bench.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Number of rounds, in each of which every way is measured once.
    #[arg(long, default_value_t = 21, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// Measure on the embedded server instead of a real ZooKeeper.
    #[arg(long)]
    embedded: bool,
}

/// Measures all ways in turns, and prints the milliseconds from start to exit.
pub(crate) async fn run(options: Options) -> Result<()> {
    let server = Server::start(options.embedded).await?;
    prepare(server.address()).await?;
    let mut samples = Way::ALL.map(|way| (way, Samples::default()));
    for round in 0..WARM_UP_ROUNDS + options.rounds {
        for (way, samples) in &mut samples {
            let (way, address) = (*way, server.address());
            let took = tokio::task::spawn_blocking(move || way.measure(address)).await??;
            if round >= WARM_UP_ROUNDS {
                samples.push(took.as_secs_f64() * 1_000.0);
            }
        }
    }
    println!("command-line bench, {}, {} rounds, ms from start to exit", server.name(), options.rounds);
    for (way, samples) in &samples {
        println!("{way:26} {samples}");
    }
    Ok(())
}

/// Creates the nodes that the compared programs use.
async fn prepare(server: SocketAddr) -> Result<()> {
    let mut client = RawClient::open(server, Duration::from_secs(10)).await?;
    for path in ["/bench", "/bench/sequential"] {
        let create = Create::new(path.to_owned(), Bytes::new(), Acl::open(), CreateMode::Persistent, 0);
        client.call(Request::Create(create)).await?;
    }
    Ok(client.close().await?)
}
