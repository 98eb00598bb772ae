//! The show: copies and servers fail and return, and the caller reports what it observed.

use crate::fleet::Launch;
use crate::policy::{self, Policy};
use crate::restock;
use crate::servers::Servers;
use crate::settings::Coordination;
use crate::stage::{MOMENT, Stage};
use anyhow::ensure;
use clap::Args;
use docent::Client;
use std::env;
use std::path::PathBuf;
use tokio::time::sleep;

const COPIES: [&str; 3] = ["a", "b", "c"];

/// Settings of the show.
#[derive(Debug, Clone, Args)]
pub struct Show {
    /// Folder for the database and the copies' logs, which are kept [default: a temporary folder, which is
    /// removed]
    #[arg(long)]
    pub folder: Option<PathBuf>,
}

/// Runs all scenes. Ctrl-C ends the copies as well.
///
/// # Errors
/// If anything that the show demonstrates does not hold.
pub async fn run(show: Show) -> anyhow::Result<()> {
    let own = tempfile::tempdir()?;
    let folder = show.folder.unwrap_or_else(|| own.path().to_owned());
    std::fs::create_dir_all(&folder)?;
    let servers = Servers::from_env().await?;
    println!("{}", servers.description());
    let launch = Launch { program: env::current_exe()?, coordination: servers.coordination.clone(), folder };
    tokio::select! {
        shown = scenes(&servers, launch) => shown,
        interrupted = tokio::signal::ctrl_c() => Ok(interrupted?),
    }
}

async fn scenes(servers: &Servers, launch: Launch) -> anyhow::Result<()> {
    println!("three copies start, and a caller sends 100 requests per second:");
    let mut stage = Stage::set(launch, &COPIES).await?.under_traffic();
    let ((), calm) = stage.during(sleep(MOMENT)).await;
    println!("  {calm}");
    ensure!(calm.by.len() == COPIES.len(), "a copy received no requests");
    follow_policy(&stage).await?;
    kill(&mut stage).await?;
    freeze(&stage).await?;
    restart(servers, &stage).await?;
    drain(&mut stage).await?;
    clean_up(stage).await?;
    println!("all checks passed");
    Ok(())
}

async fn follow_policy(stage: &Stage) -> anyhow::Result<()> {
    let policy = policy::config(&stage.client)?;
    policy.publish(&Policy { most_per_order: 1, ..Policy::default() }).await?;
    let ((), report) = stage.during(async {}).await;
    println!(
        "an operator limits orders to one of each item; the copies apply the change while they serve:\n  {report}"
    );
    Ok(())
}

async fn kill(stage: &mut Stage) -> anyhow::Result<()> {
    let leader = leader(stage).await?;
    println!("{leader}, the leader that restocks, is killed (SIGKILL):");
    let (moment, until_removed) = stage.kill(&leader).await?;
    println!("  in the second after the kill: {moment}");
    println!("  until its session expired: {until_removed}");
    // Orders may have to wait for the lock that the copy held, until its session expires.
    ensure!(moment.failed_reads * 100 <= moment.requests, "too many reads failed");
    stage.open(&leader).await?;
    println!("  {} now restocks; {leader} was restarted", self::leader(stage).await?);
    Ok(())
}

/// Returns the name of the leading copy, once there is one.
async fn leader(stage: &Stage) -> anyhow::Result<String> {
    let leader = restock::election(&stage.client, "caller")?.wait_for_leader().await?;
    Ok(leader.id)
}

async fn freeze(stage: &Stage) -> anyhow::Result<()> {
    println!("b is suspended (SIGSTOP) until its session has expired, and then resumed (SIGCONT):");
    let report = stage.freeze("b").await?;
    println!("  until b serves again: {report}");
    Ok(())
}

async fn restart(servers: &Servers, stage: &Stage) -> anyhow::Result<()> {
    let Some(server) = &servers.embedded else {
        println!("skipped the restart of the servers, which were not started by this program");
        return Ok(());
    };
    let outage = async {
        server.stop_listening().await?;
        sleep(MOMENT).await;
        server.listen_again().await
    };
    let (done, report) = stage.during(outage).await;
    done?;
    println!("the servers are down for {MOMENT:?}, and return:\n  {report}");
    Ok(())
}

async fn drain(stage: &mut Stage) -> anyhow::Result<()> {
    println!("c is asked to stop (SIGTERM):");
    let (last_line, report) = stage.drain("c").await?;
    println!("  {report}\n  {last_line}");
    ensure!(report.failed() == 0, "requests failed during the drain");
    Ok(())
}

async fn clean_up(mut stage: Stage) -> anyhow::Result<()> {
    for name in ["a", "b"] {
        println!("{}", stage.fleet.stop(name).await?);
    }
    stage.client.close().await;
    let Coordination { connect, namespace, .. } = &stage.fleet.launch().coordination;
    let client = Client::connect(connect).await?;
    client.delete_all(namespace).await?;
    client.close().await;
    Ok(())
}
