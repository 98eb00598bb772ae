use crate::stage::Stage;
use anyhow::{Context, ensure};
use docent::{Client, Election, Error};
use std::time::Duration;
use tokio::time::{sleep, timeout};

/// One of two candidates leads; the other takes over when it resigns.
pub(crate) async fn show(stage: &Stage) -> anyhow::Result<()> {
    stage.headline("Election: the next candidate leads when the leader resigns");
    let (first, second) = (stage.client("first").await?, stage.client("second").await?);
    let (one, other) = (election(stage, &first, "first")?, election(stage, &second, "second")?);
    let leadership = one.campaign().await?;
    stage.print("first", format_args!("leads, fence {}", leadership.fence()));
    let campaign = tokio::spawn(other.campaign());
    until_both_campaign(&one).await?;
    let leader = one.leader().await?.context("there is no leader")?;
    ensure!(leader.id == "first", "the leader is {}", leader.id);

    let fence = leadership.fence();
    leadership.resign().await?;
    stage.print("first", "resigned");
    let next = campaign.await??;
    ensure!(next.fence() > fence, "fence {} of the next leader is not higher than {fence}", next.fence());
    stage.print("second", format_args!("leads, fence {}", next.fence()));
    next.resign().await?;
    second.close().await;
    first.close().await;
    Ok(())
}

fn election(stage: &Stage, client: &Client, id: &str) -> Result<Election, Error> {
    Election::builder(client, &format!("{}/election", stage.root())).id(id).build()
}

async fn until_both_campaign(election: &Election) -> anyhow::Result<()> {
    let both = async {
        while election.candidates().await?.len() < 2 {
            sleep(Duration::from_millis(10)).await;
        }
        anyhow::Ok(())
    };
    timeout(Duration::from_secs(5), both)
        .await
        .context("the second candidate did not join the line in time")?
}
