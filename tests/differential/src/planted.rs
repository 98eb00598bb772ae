use anyhow::Result;
use docent_differential::Campaign;

/// Plants one defect after the other into the embedded server, each until a script detects it, and prints a
/// table.
///
/// # Errors
/// Returns an error if a defect is not detected.
#[cfg(docent_planted)]
pub(crate) async fn run(campaign: Campaign) -> Result<()> {
    use docent_differential::Servers;
    use docent_server::planted::{Planted, plant};

    let mut servers = Servers::start().await?;
    println!("| planted defect | seed | steps left | found at |");
    println!("|---|---|---|---|");
    let mut survived = Vec::new();
    let mut found = 0;
    for defect in Planted::ALL.iter().filter(|defect| defect.test().is_none()) {
        plant(Some(*defect));
        servers.renew_embedded().await?;
        match campaign.first_failure(&servers).await? {
            Some(failure) => {
                plant(None);
                let otherwise = servers.difference(&failure.script).await?;
                anyhow::ensure!(otherwise.is_none(), "seed {} also differs without a defect", failure.seed);
                let step = failure.difference.step.trim_start_matches("> ");
                println!("| {} | {} | {} | `{step}` |", defect.name(), failure.seed, failure.script.len());
                found += 1;
            }
            None => survived.push(defect.name()),
        }
    }
    anyhow::ensure!(survived.is_empty(), "not found: {}", survived.join(", "));
    println!("all {found} found");
    Ok(())
}

/// Fails, because defects are planted only into builds with `--cfg docent_planted`.
#[cfg(not(docent_planted))]
#[expect(clippy::unused_async, reason = "the other one waits")]
pub(crate) async fn run(_campaign: Campaign) -> Result<()> {
    anyhow::bail!("--planted needs a build with --cfg docent_planted")
}
