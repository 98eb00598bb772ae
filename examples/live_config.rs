//! A service that follows its configuration while it runs:
//!
//! ```text
//! cargo run --example live_config                  terminal 1: follows, and says what to type in terminal 2,
//! such as DOCENT_CONNECT=127.0.0.1:40123 cargo run --example live_config -- set 250
//! DOCENT_CONNECT=127.0.0.1:40123 cargo run --example live_config -- set 0            refused before it is
//! published DOCENT_CONNECT=127.0.0.1:40123 cargo run --example live_config -- raw nonsense     published
//! past the check, refused there DOCENT_CONNECT=127.0.0.1:40123 cargo run --example live_config -- rollback
//!
//! cargo run --example live_config -- demo          all of it by itself, in a moment
//! ```
//!
//! With `DOCENT_CONNECT=host:port` in terminal 1 as well it runs on a real ensemble. There each follower
//! keeps the last good value in a file given by `--snapshot FILE`, and starts from that while the servers are
//! away.

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
    /// Where a follower keeps the last good value.
    #[arg(long)]
    snapshot: Option<PathBuf>,
    #[command(subcommand)]
    what: Option<What>,
}

#[derive(Subcommand)]
enum What {
    /// Follow until it is interrupted (the default).
    Follow,
    /// Publish a value.
    Set { per_second: u32 },
    /// Write any text past the check, as somebody with another tool could.
    Raw { text: String },
    /// Go back to the value before.
    Rollback,
    /// Delete the value.
    Delete,
    /// Show all of it.
    Demo,
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    log_to_stderr()?;
    let Arguments { snapshot, what } = Arguments::parse();
    let ensemble = Ensemble::from_env().await?;
    println!("{}", ensemble.description());
    // Does not wait for the servers: a follower with a file can do without them.
    let client = ensemble.servers.client().build()?;
    match what.unwrap_or(What::Follow) {
        What::Follow => follow(&ensemble, &client, snapshot).await?,
        What::Set { per_second } => set(&client, per_second).await?,
        What::Raw { text } => drop(client.set(PATH, text, None).await?),
        What::Rollback => rollback(&client).await?,
        What::Delete => ensure!(config(&client, None)?.delete().await?, "there is none"),
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
    println!("in another terminal: DOCENT_CONNECT={servers} cargo run --example live_config -- set 250");
    let mut limits = config(client, snapshot)?.subscribe().await?;
    let current = limits.current();
    println!("serving {} per second, from: {:?}", current.per_second, current.origin());
    loop {
        tokio::select! {
            interrupted = tokio::signal::ctrl_c() => return Ok(interrupted?),
            change = limits.changed() => match change {
                Some(change) => tell(&change?, &limits),
                None => return Ok(()),
            },
        }
    }
}

fn tell(change: &Change<Limits>, limits: &Subscription<Limits>) {
    match change {
        Change::Value(value) => println!("serving {} per second from now on", value.per_second),
        Change::Missing => {
            println!("nothing published yet: serving {} per second", limits.current().per_second);
        }
        Change::Deleted => println!("deleted: still serving {} per second", limits.current().per_second),
        // These values are no secrets.
        Change::Refused(refusal) => {
            println!(
                "refused: {}; still serving {} per second",
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
            println!("published: version {}", result?.revision().context("it has one")?.version);
            Ok(())
        }
    }
}

async fn rollback(client: &Client) -> anyhow::Result<()> {
    let config = config(client, None)?;
    // Refused values are in the history as well.
    let past = config.history().await?.into_iter().find(|past| past.value.is_ok());
    let past = past.context("there is no earlier good value")?;
    let value = config.rollback(&past.revision).await?;
    println!("published again: {} per second", value.per_second);
    Ok(())
}

async fn demo(client: &Client) -> anyhow::Result<()> {
    let config = config(client, None)?;
    config.publish(&Limits { per_second: 100 }).await?;
    let mut limits = config.subscribe().await?;
    println!("serving {} per second", limits.current().per_second);
    config.publish(&Limits { per_second: 250 }).await?;
    tell(&next(&mut limits).await?, &limits);
    ensure!(limits.current().per_second == 250, "the change was not applied");
    ensure!(set(client, 0).await.is_err(), "a bad value was published");
    println!("0 is refused before it is published");
    client.set(PATH, "nonsense", None).await?;
    tell(&next(&mut limits).await?, &limits);
    ensure!(limits.current().per_second == 250, "the last good value did not stay");
    rollback(client).await?;
    tell(&next(&mut limits).await?, &limits);
    config.delete().await?;
    tell(&next(&mut limits).await?, &limits);
    ensure!(limits.is_missing() && limits.current().per_second == 100, "the last good value did not stay");
    match client.delete("/docent-live-config", None).await {
        Err(error) if error.kind() != ErrorKind::NoNode => return Err(error.into()),
        _ => println!("everything held"),
    }
    Ok(())
}

async fn next(limits: &mut Subscription<Limits>) -> anyhow::Result<Change<Limits>> {
    Ok(limits.changed().await.context("the client was closed")??)
}
