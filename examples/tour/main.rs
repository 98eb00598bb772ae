//! Shows in a few seconds what Docent's locks, elections, queues and registry do. The example needs nothing
//! installed but Rust:
//!
//! ```text
//! cargo run --example tour
//! ```
//!
//! `DOCENT_CONNECT=host:port` runs the example on a real ensemble, and `RUST_LOG=docent=debug` shows
//! internals. It ends with an error if anything that it shows does not hold.

mod cable;
mod cancelled;
mod config;
mod cut_off;
mod found;
mod jobs;
mod leaders;
mod members;
mod readers;
mod reentry;
mod stage;
mod turns;

use anyhow::Context;
use docent_examples::{clean_up, log_to_stderr};
use stage::Stage;
use std::process::ExitCode;
use std::sync::Arc;

#[tokio::main]
async fn main() -> ExitCode {
    docent_examples::exit_code(run().await)
}

async fn run() -> anyhow::Result<()> {
    log_to_stderr()?;
    let stage = Arc::new(Stage::set().await?);
    let tour = tokio::time::timeout(stage.limit(), show(&stage)).await;
    tour.with_context(|| format!("the tour did not end within {:?}", stage.limit()))?
}

async fn show(stage: &Arc<Stage>) -> anyhow::Result<()> {
    let guide = stage.client("guide").await?;
    turns::show(stage).await?;
    reentry::show(stage).await?;
    cancelled::show(stage).await?;
    readers::show(stage).await?;
    leaders::show(stage).await?;
    jobs::show(stage).await?;
    cut_off::show(stage).await?;
    found::show(stage).await?;
    for name in ["services/shop", "services", "jobs"] {
        clean_up(&guide, &format!("{}/{name}", stage.root())).await?;
    }
    config::show(stage).await?;
    members::show(stage).await?;
    clean_up(&guide, stage.root()).await?;
    guide.close().await;
    stage.print("tour", "all checks passed");
    Ok(())
}
