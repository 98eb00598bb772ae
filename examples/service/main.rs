//! Three tiny HTTP servers, each in its own process, and a client that discovers them: one is killed and
//! leaves the rotation, one drains.
//!
//! ```text
//! cargo run --example service
//! ```
//!
//! `DOCENT_CONNECT=host:port` runs the example on a real ensemble. It ends with an error if anything that it
//! shows does not hold.

mod caller;
mod shop;

use anyhow::ensure;
use caller::Caller;
use clap::{Parser, Subcommand};
use docent::discovery::{OutlierPolicy, ServiceBuilder, ServiceChange};
use docent::{Registry, Service};
use docent_examples::{Ensemble, clean_up, log_to_stderr, own_path};
use futures_util::StreamExt;
use shop::{Meta, Shop};
use std::time::Duration;
use tokio::time::timeout;

const LIMIT: Duration = Duration::from_secs(60);

/// Three tiny HTTP servers register, and a client balances over them; one is killed, one drains.
///
/// The example starts its own server. DOCENT_CONNECT=host:port makes it use a real ensemble, for which it
/// assumes a tickTime of 2 s. RUST_LOG=docent::discovery=debug logs to stderr.
#[derive(Parser)]
#[command(name = "service", disable_help_subcommand = true)]
struct Cli {
    #[command(subcommand)]
    role: Option<Role>,
}

/// Role of a process that this program started.
#[derive(Subcommand)]
enum Role {
    /// One of the servers.
    #[command(hide = true)]
    Shop(Shop),
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let Cli { role } = Cli::parse();
    log_to_stderr()?;
    if let Some(Role::Shop(shop)) = role {
        return shop::run(shop).await;
    }
    let ensemble = Ensemble::from_env().await?;
    println!("{}", ensemble.description());
    timeout(LIMIT, show(&ensemble)).await?
}

async fn show(ensemble: &Ensemble) -> anyhow::Result<()> {
    let root = own_path("service");
    let base = format!("{root}/services");
    let servers = &ensemble.servers;
    println!("three shops start:");
    let a = shop::open(servers, &base, "a").await?;
    let b = shop::open(servers, &base, "b").await?;
    let c = shop::open(servers, &base, "c").await?;

    let client = servers.client().connect().await?;
    let registry = Registry::new(&client, &base)?;
    println!("services: {:?}", registry.names().await?);
    let view: ServiceBuilder<Meta> = registry.service_builder("shop");
    let shops = view.outlier_policy(OutlierPolicy::default().threshold(1)).open().await?;
    let caller = Caller::new(shops.clone());

    println!("nine requests are distributed over the shops:");
    ensure!(caller.send(9).await?.answered("a") == 3, "the requests were not distributed evenly");

    println!("a is killed without deregistering: one request fails over, all others succeed");
    a.kill().await?;
    let round = caller.send(9).await?;
    ensure!(round.failures <= 1 && round.answered("a") == 0, "{round:?}");
    until_removed(&shops, "a").await?;
    println!("the session of a has expired, and a is no longer listed");
    ensure!(caller.send(4).await?.failures == 0, "a still receives requests");

    println!("b drains: it completes its requests, and receives no new ones");
    let draining = tokio::spawn(b.stop());
    until_removed(&shops, "b").await?;
    let round = caller.send(4).await?;
    ensure!(round.failures == 0 && round.answered("c") == 4, "{round:?}");
    draining.await??;

    c.stop().await?;
    until_removed(&shops, "c").await?;
    ensure!(shops.pick().is_err(), "a shop is still listed");
    for path in [format!("{base}/shop"), base, root] {
        clean_up(&client, &path).await?;
    }
    client.close().await;
    println!("all checks passed");
    Ok(())
}

/// Waits until a shop is no longer in the list.
async fn until_removed(shops: &Service<Meta>, id: &str) -> anyhow::Result<()> {
    let mut changes = shops.changes();
    while shops.instances().iter().any(|instance| instance.id == id) {
        match changes.next().await {
            Some(Ok(ServiceChange::Removed(instance))) => println!("  {} was removed", instance.id),
            Some(_) => {}
            None => anyhow::bail!("the client was closed"),
        }
    }
    Ok(())
}
