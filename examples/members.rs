//! Watches the hosts of a cluster:
//!
//! ```text
//! # terminal 1: watches the hosts, and prints the command for other terminals
//! cargo run --example members
//!
//! # other terminals: joins until the process is interrupted or killed
//! DOCENT_CONNECT=127.0.0.1:40123 cargo run --example members -- join host-1
//!
//! # runs hosts that join, change, leave and stop, in one process
//! cargo run --example members -- demo
//! ```
//!
//! With `DOCENT_CONNECT=host:port` in terminal 1 as well, the example runs on a real ensemble.

use anyhow::{Context, ensure};
use clap::{Parser, Subcommand};
use docent::discovery::{MemberChange, MemberChanges};
use docent::{Members, Membership};
use docent_examples::{Ensemble, clean_up, log_to_stderr, own_path};
use futures_util::StreamExt;
use std::time::Duration;
use tokio::time::timeout;

const PATH: &str = "/docent-members/hosts";

#[derive(Parser)]
struct Arguments {
    #[command(subcommand)]
    what: Option<What>,
}

#[derive(Subcommand)]
enum What {
    /// Watch the hosts until interrupted (the default)
    Watch,
    /// Be a host until interrupted
    Join { host: String },
    /// Demonstrate everything
    Demo,
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    log_to_stderr()?;
    let ensemble = Ensemble::from_env().await?;
    println!("{}", ensemble.description());
    match Arguments::parse().what.unwrap_or(What::Watch) {
        What::Watch => watch(&ensemble).await,
        What::Join { host } => join(&ensemble, &host).await,
        What::Demo => timeout(Duration::from_secs(60), demo(&ensemble)).await?,
    }
}

async fn watch(ensemble: &Ensemble) -> anyhow::Result<()> {
    let servers = &ensemble.servers.connect_string;
    println!("run in other terminals: DOCENT_CONNECT={servers} cargo run --example members -- join host-1");
    let client = ensemble.servers.client().connect().await?;
    let members = Membership::new(&client, PATH)?.members().await?;
    let mut changes = members.changes();
    loop {
        tokio::select! {
            interrupted = tokio::signal::ctrl_c() => {
                interrupted?;
                client.close().await;
                return Ok(());
            }
            change = changes.next() => print_change(&change.context("the client was closed")??, &members),
        }
    }
}

fn print_change(change: &MemberChange, members: &Members) {
    let count = members.current().len();
    match change {
        MemberChange::Joined(peer) => {
            println!("{} joined, at {}; {count} members", peer.id, String::from_utf8_lossy(&peer.data));
        }
        MemberChange::Updated(peer) => println!("{} data: {}", peer.id, String::from_utf8_lossy(&peer.data)),
        MemberChange::Left(peer) => println!("{} left; {count} members", peer.id),
        MemberChange::Current => println!("the list is complete"),
        other => println!("{other:?}"),
    }
}

async fn join(ensemble: &Ensemble, host: &str) -> anyhow::Result<()> {
    let client = ensemble.servers.client().connect().await?;
    let member = Membership::new(&client, PATH)?.join_by_identity(host).await?;
    println!("{} joined; interrupt this process to leave, or kill it to simulate a crash", member.id());
    tokio::signal::ctrl_c().await?;
    member.leave().await?;
    client.close().await;
    Ok(())
}

async fn demo(ensemble: &Ensemble) -> anyhow::Result<()> {
    let root = own_path("members");
    let path = format!("{root}/hosts");
    let watcher = ensemble.servers.client().connect().await?;
    let members = Membership::new(&watcher, &path)?.members().await?;
    let mut changes = members.changes();
    let mut hosts = Vec::new();
    for host in ["host-1", "host-2", "host-3"] {
        let client = ensemble.servers.client().connect().await?;
        let member = Membership::new(&client, &path)?.join_by_identity(host).await?;
        until(&mut changes, &members, |change| matches!(change, MemberChange::Joined(_))).await?;
        hosts.push((client, member));
    }
    hosts[0].1.set_data("draining");
    until(&mut changes, &members, |change| matches!(change, MemberChange::Updated(_))).await?;

    let (client, member) = hosts.remove(0);
    member.leave().await?;
    until(&mut changes, &members, |change| matches!(change, MemberChange::Left(_))).await?;
    client.close().await;

    // A member that does not leave explicitly: its node is deleted with its session.
    let (stopped, _member) = hosts.remove(0);
    stopped.close().await;
    until(&mut changes, &members, |change| matches!(change, MemberChange::Left(_))).await?;
    let remaining: Vec<_> = members.current().into_iter().map(|peer| peer.id).collect();
    ensure!(remaining.len() == 1 && &*remaining[0] == "host-3", "the remaining members are {remaining:?}");

    for (client, member) in hosts {
        member.leave().await?;
        client.close().await;
    }
    clean_up(&watcher, &root).await?;
    watcher.close().await;
    println!("all checks passed");
    Ok(())
}

/// Prints changes, up to and including the first one for which `is_last` returns true.
async fn until(
    changes: &mut MemberChanges,
    members: &Members,
    is_last: impl Fn(&MemberChange) -> bool,
) -> anyhow::Result<()> {
    loop {
        let change = changes.next().await.context("the client was closed")??;
        print_change(&change, members);
        if is_last(&change) {
            return Ok(());
        }
    }
}
