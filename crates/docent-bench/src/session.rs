//! The session bench: starts the server, runs the clients in turns, and reports.

use crate::clients::Which;
use crate::report::Report;
use anyhow::{Context, Result, ensure};
use bytes::Bytes;
use clap::Args;
use docent_battery::{Direction, Proxy, RawClient, RealServer};
use docent_proto::{Acl, Create, CreateMode, Request};
use std::net::SocketAddr;
use std::time::Duration;
use tokio::process::Command;

/// Folder in which clients create nodes.
pub(crate) const FOLDER: &str = "/bench/line";
/// Node that the clients read.
pub(crate) const NODE: &str = "/bench/node";
const NODE_BYTES: usize = 100;

/// Requests in flight at a time in the concurrent measurements.
pub(crate) const IN_FLIGHT: usize = 256;

/// Rounds before the first that counts. A server that has just started compiles its code while it runs, on
/// the cores that the clients use.
const WARM_UP_ROUNDS: u32 = 5;

/// Delay of the slow link in each direction.
const LINK_DELAY: Duration = Duration::from_millis(5);

/// Command line of the session bench.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Number of rounds, in each of which all clients are measured one after the other.
    #[arg(long, default_value_t = 11, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// Send a tenth of the requests in each round.
    #[arg(long)]
    quick: bool,
    /// Measure on the embedded server instead of a real ZooKeeper.
    #[arg(long)]
    embedded: bool,
}

pub(crate) async fn run(options: Options) -> Result<()> {
    let server = Server::start(options.embedded).await?;
    prepare(server.address()).await?;
    let far = Proxy::start(server.address()).await?;
    far.set_delay(Direction::ToServer, LINK_DELAY);
    far.set_delay(Direction::ToClient, LINK_DELAY);

    let percent = if options.quick { "10" } else { "100" };
    let arguments = [server.address().to_string(), far.connect_string(), "--percent".into(), percent.into()];
    for round in 1..=WARM_UP_ROUNDS {
        eprintln!("warming up: {round} of {WARM_UP_ROUNDS}");
        for which in Which::ALL {
            worker(which, &arguments).await?;
        }
    }
    let mut report = Report::default();
    for round in 0..options.rounds {
        let mut turns = Which::ALL;
        turns.rotate_left(round as usize % Which::ALL.len());
        for which in turns {
            eprintln!("round {} of {}: {which}", round + 1, options.rounds);
            report.add(which, &worker(which, &arguments).await?)?;
        }
    }
    println!("session bench, {}, {} rounds{}", server.name(), options.rounds, quick(options.quick));
    println!("{report}");
    Ok(())
}

fn quick(quick: bool) -> &'static str {
    if quick { ", quick" } else { "" }
}

/// Measures one client in a separate process. Returns its output.
async fn worker(which: Which, arguments: &[String]) -> Result<String> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["worker", which.name()]).args(arguments).kill_on_drop(true);
    let output = command.stderr(std::process::Stdio::inherit()).output().await?;
    ensure!(output.status.success(), "{which} failed: {}", output.status);
    String::from_utf8(output.stdout).context("a worker prints text")
}

/// Creates the nodes that clients use.
pub(crate) async fn prepare(server: SocketAddr) -> Result<()> {
    let mut client = RawClient::open(server, Duration::from_secs(10)).await?;
    let node = Bytes::from(vec![b'x'; NODE_BYTES]);
    for (path, data) in [("/bench", Bytes::new()), (FOLDER, Bytes::new()), (NODE, node)] {
        let create = Create::new(path.to_owned(), data, Acl::open(), CreateMode::Persistent, 0);
        client.call(Request::Create(create)).await?;
    }
    Ok(client.close().await?)
}

/// Server on which clients are measured.
#[derive(Debug)]
pub(crate) enum Server {
    Real(RealServer),
    Embedded(Box<docent::server::Server>),
}

impl Server {
    pub(crate) async fn start(embedded: bool) -> Result<Self> {
        Ok(match embedded {
            true => Self::Embedded(Box::new(docent::server::Server::start().await?)),
            false => Self::Real(RealServer::start().await?),
        })
    }

    pub(crate) fn address(&self) -> SocketAddr {
        match self {
            Self::Real(server) => server.address(),
            Self::Embedded(server) => server.local_addr(),
        }
    }

    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Real(_) => "real ZooKeeper",
            Self::Embedded(_) => "embedded server",
        }
    }
}
