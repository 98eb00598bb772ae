use anyhow::{Result, bail};
use docent_differential::Campaign;

pub(crate) async fn run(_campaign: Campaign) -> Result<()> {
    bail!("defects are planted only into builds with --cfg docent_planted")
}
