//! Three tiny HTTP servers, each a process, and a client that finds them: one is killed and leaves the
//! rotation, one drains.
//!
//! ```text
//! cargo run --example service
//! ```
//!
//! `DOCENT_CONNECT=host:port` runs it on a real ensemble. It ends with an error if anything it shows does not
//! hold.

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
/// It starts a server of its own. DOCENT_CONNECT=host:port makes it use a real ensemble; a tickTime of 2 s is
/// assumed there. RUST_LOG=docent_discovery=debug logs to stderr.
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
    println!("three shops open:");
    let a = shop::open(servers, &base, "a").await?;
    let b = shop::open(servers, &base, "b").await?;
    let c = shop::open(servers, &base, "c").await?;

    let client = servers.client().connect().await?;
    let registry = Registry::new(&client, &base)?;
    println!("services: {:?}", registry.names().await?);
    let view: ServiceBuilder<Meta> = registry.service_builder("shop");
    let shops = view.outlier_policy(OutlierPolicy::default().threshold(1)).open().await?;
    let caller = Caller::new(shops.clone());

    println!("nine requests go round:");
    ensure!(caller.ask(9).await?.answered("a") == 3, "not everybody had a turn");

    println!("a is killed, without a word to anybody: one request finds out, the others go on");
    a.kill().await?;
    let round = caller.ask(9).await?;
    ensure!(round.failures <= 1 && round.answered("a") == 0, "{round:?}");
    until_gone(&shops, "a").await?;
    println!("its session has ended, and a is gone from the list");
    ensure!(caller.ask(4).await?.failures == 0, "somebody still asks a");

    println!("b drains: it finishes what it has, and gets nothing new");
    let draining = tokio::spawn(b.stop());
    until_gone(&shops, "b").await?;
    let round = caller.ask(4).await?;
    ensure!(round.failures == 0 && round.answered("c") == 4, "{round:?}");
    draining.await??;

    c.stop().await?;
    until_gone(&shops, "c").await?;
    ensure!(shops.pick().is_err(), "somebody is left");
    for path in [format!("{base}/shop"), base, root] {
        clean_up(&client, &path).await?;
    }
    client.close().await;
    println!("everything held");
    Ok(())
}

/// Waits until a shop is not to be asked any more.
async fn until_gone(shops: &Service<Meta>, id: &str) -> anyhow::Result<()> {
    let mut changes = shops.changes();
    while shops.instances().iter().any(|instance| instance.id == id) {
        match changes.next().await {
            Some(Ok(ServiceChange::Removed(instance))) => println!("  {} is gone", instance.id),
            Some(_) => {}
            None => anyhow::bail!("the client was closed"),
        }
    }
    Ok(())
}
