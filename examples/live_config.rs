//! A service that follows its configuration while it runs:
//!
//! ```text
//! # terminal 1: follows the configuration, and prints the command for terminal 2
//! cargo run --example live_config
//!
//! # terminal 2
//! export DOCENT_CONNECT=127.0.0.1:40123
//! # publishes a value
//! cargo run --example live_config -- set 250
//! # is rejected before it is published
//! cargo run --example live_config -- set 0
//! # is published without validation, and rejected by the follower
//! cargo run --example live_config -- raw nonsense
//! # publishes the previous value again
//! cargo run --example live_config -- rollback
//!
//! # runs all of this in one process
//! cargo run --example live_config -- demo
//! ```
//!
//! With `DOCENT_CONNECT=host:port` in terminal 1 as well, the example runs on a real ensemble. There, each
//! follower stores the last valid value in a file given by `--snapshot FILE`, and starts from that value
//! during an outage of the servers.

use anyhow::{Context, ensure};
use clap::{Parser, Subcommand};
use docent::config::{Change, PublishError};
use docent::{Client, Config, ErrorKind, Subscription};
use docent_examples::{Ensemble, log_to_stderr};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::time::Duration;
use tokio::time::timeout;

const PATH: &str = "/docent-live-config/limits";

/// Settings of the service.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Limits {
    per_second: u32,
}

#[derive(Parser)]
struct Arguments {
    /// File in which a follower stores the last valid value
    #[arg(long)]
    snapshot: Option<PathBuf>,
    #[command(subcommand)]
    what: Option<What>,
}

#[derive(Subcommand)]
enum What {
    /// Follow the configuration until interrupted (the default)
    Follow,
    /// Publish a value.
    Set { per_second: u32 },
    /// Write any text without validation, as another tool could
    Raw { text: String },
    /// Go back to the previous value
    Rollback,
    /// Delete the value.
    Delete,
    /// Demonstrate everything
    Demo,
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    log_to_stderr()?;
    let Arguments { snapshot, what } = Arguments::parse();
    let ensemble = Ensemble::from_env().await?;
    println!("{}", ensemble.description());
    // Does not wait for the servers: a follower with a file can start without them.
    let client = ensemble.servers.client().build()?;
    match what.unwrap_or(What::Follow) {
        What::Follow => follow(&ensemble, &client, snapshot).await?,
        What::Set { per_second } => set(&client, per_second).await?,
        What::Raw { text } => drop(client.set(PATH, text, None).await?),
        What::Rollback => rollback(&client).await?,
        What::Delete => ensure!(config(&client, None)?.delete().await?, "no value is published"),
        What::Demo => timeout(Duration::from_secs(30), demo(&client)).await??,
    }
    client.close().await;
    Ok(())
}

fn config(client: &Client, snapshot: Option<PathBuf>) -> Result<Config<Limits>, docent::Error> {
    let in_range = |limits: &Limits| match limits.per_second {
        1..=10_000 => Ok(()),
        other => Err(format!("per_second {other} must be from 1 to 10000")),
    };
    let builder = Config::builder(client, PATH).validate(in_range).default_value(Limits { per_second: 10 });
    match snapshot {
        Some(file) => builder.snapshot_file(file).build(),
        None => builder.build(),
    }
}

async fn follow(ensemble: &Ensemble, client: &Client, snapshot: Option<PathBuf>) -> anyhow::Result<()> {
    let servers = &ensemble.servers.connect_string;
    println!("run in another terminal: DOCENT_CONNECT={servers} cargo run --example live_config -- set 250");
    let mut limits = config(client, snapshot)?.subscribe().await?;
    let current = limits.current();
    println!("serving {} per second, origin: {:?}", current.per_second, current.origin());
    loop {
        tokio::select! {
            interrupted = tokio::signal::ctrl_c() => return Ok(interrupted?),
            change = limits.changed() => match change {
                Some(change) => print_change(&change?, &limits),
                None => return Ok(()),
            },
        }
    }
}

fn print_change(change: &Change<Limits>, limits: &Subscription<Limits>) {
    match change {
        Change::Value(value) => println!("serving {} per second from now on", value.per_second),
        Change::Missing => {
            println!("no value is published yet; serving {} per second", limits.current().per_second);
        }
        Change::Deleted => println!("deleted; still serving {} per second", limits.current().per_second),
        // These values are not secret.
        Change::Refused(refusal) => {
            println!(
                "rejected a value: {}; still serving {} per second",
                refusal.detail(),
                limits.current().per_second
            );
        }
        other => println!("{other:?}"),
    }
}

async fn set(client: &Client, per_second: u32) -> anyhow::Result<()> {
    match config(client, None)?.publish(&Limits { per_second }).await {
        Err(PublishError::Refused(refusal)) => anyhow::bail!("not published: {}", refusal.detail()),
        result => {
            println!(
                "published version {}",
                result?.revision().context("a published value has a revision")?.version
            );
            Ok(())
        }
    }
}

async fn rollback(client: &Client) -> anyhow::Result<()> {
    let config = config(client, None)?;
    // The history also contains invalid values.
    let past = config.history().await?.into_iter().find(|past| past.value.is_ok());
    let past = past.context("there is no earlier valid value")?;
    let value = config.rollback(&past.revision).await?;
    println!("rolled back to {} per second", value.per_second);
    Ok(())
}

async fn demo(client: &Client) -> anyhow::Result<()> {
    let config = config(client, None)?;
    config.publish(&Limits { per_second: 100 }).await?;
    let mut limits = config.subscribe().await?;
    println!("serving {} per second", limits.current().per_second);
    config.publish(&Limits { per_second: 250 }).await?;
    print_change(&next(&mut limits).await?, &limits);
    ensure!(limits.current().per_second == 250, "the change was not applied");
    ensure!(set(client, 0).await.is_err(), "an invalid value was published");
    println!("0 was rejected before it was published");
    client.set(PATH, "nonsense", None).await?;
    print_change(&next(&mut limits).await?, &limits);
    ensure!(limits.current().per_second == 250, "the last valid value was not kept");
    rollback(client).await?;
    print_change(&next(&mut limits).await?, &limits);
    config.delete().await?;
    print_change(&next(&mut limits).await?, &limits);
    ensure!(limits.is_missing() && limits.current().per_second == 100, "the last valid value was not kept");
    match client.delete("/docent-live-config", None).await {
        Err(error) if error.kind() != ErrorKind::NoNode => return Err(error.into()),
        _ => println!("all checks passed"),
    }
    Ok(())
}

async fn next(limits: &mut Subscription<Limits>) -> anyhow::Result<Change<Limits>> {
    Ok(limits.changed().await.context("the client was closed")??)
}
