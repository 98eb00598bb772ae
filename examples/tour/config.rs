use crate::stage::Stage;
use anyhow::{Context, ensure};
use docent::config::Change;
use docent::{Client, Config};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
struct Limits {
    per_second: u32,
}

fn limits(stage: &Stage, client: &Client) -> Result<Config<Limits>, docent::Error> {
    let at_least_one = |limits: &Limits| match limits.per_second {
        0 => Err("per_second 0 must be at least 1"),
        _ => Ok(()),
    };
    Config::builder(client, &format!("{}/limits", stage.root())).validate(at_least_one).build()
}

/// A service follows its configuration: changes apply immediately, and invalid values are rejected.
pub(crate) async fn show(stage: &Stage) -> anyhow::Result<()> {
    stage.headline("Configuration: a service follows changes, and keeps the last valid value");
    let (operator, service) = (stage.client("operator").await?, stage.client("service").await?);
    let published = limits(stage, &operator)?;
    published.publish(&Limits { per_second: 100 }).await?;
    let mut followed = limits(stage, &service)?.subscribe().await?;
    stage.print("service", format_args!("starts at {} per second", followed.current().per_second));

    published.update(|now| Some(Limits { per_second: now?.per_second * 2 })).await?;
    let Some(Ok(Change::Value(value))) = followed.changed().await else { anyhow::bail!("no value arrived") };
    stage.print("service", format_args!("continues at {} per second", value.per_second));
    ensure!(value.per_second == 200, "the update was not applied exactly once");

    let refused = published.publish(&Limits { per_second: 0 }).await.err().context("0 was published")?;
    stage.print("operator", refused);
    operator.set(published.path(), "per_second = 50", None).await?;
    let Some(Ok(Change::Refused(refusal))) = followed.changed().await else {
        anyhow::bail!("the invalid value was not rejected")
    };
    stage.print("service", format_args!("rejected {refusal}"));
    ensure!(followed.current().per_second == 200, "the last valid value was not kept");

    let first = published.history().await?.pop().context("the history is empty")?;
    published.rollback(&first.revision).await?;
    let Some(Ok(Change::Value(value))) = followed.changed().await else { anyhow::bail!("no value arrived") };
    stage.print("service", format_args!("rolled back to {} per second, from the history", value.per_second));
    published.delete().await?;
    operator.close().await;
    service.close().await;
    Ok(())
}
