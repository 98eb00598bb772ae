//! Logs and metrics of a copy.

use anyhow::Context;
use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle};
use std::io;
use std::time::Duration;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::LevelFilter;

/// Upper bounds of histograms, in seconds.
const BUCKETS: [f64; 8] = [0.001, 0.005, 0.02, 0.1, 0.5, 2.0, 10.0, 60.0];

/// Interval at which the recorder aggregates its samples, even if they are not queried.
const UPKEEP: Duration = Duration::from_secs(5);

/// Logs to stderr, at the level `info` unless `RUST_LOG` selects another, and records metrics. Must be called
/// before a client is built, because the client uses the recorder that is installed at that time.
///
/// # Errors
/// If the value of `RUST_LOG` is invalid, or a recorder is already installed.
pub fn install() -> anyhow::Result<PrometheusHandle> {
    let filter = EnvFilter::builder().with_default_directive(LevelFilter::INFO.into()).from_env();
    let filter = filter.context("RUST_LOG")?;
    tracing_subscriber::fmt().with_env_filter(filter).with_ansi(false).with_writer(io::stderr).init();
    let metrics = PrometheusBuilder::new().set_buckets(&BUCKETS)?.install_recorder()?;
    tokio::spawn(keep_up(metrics.clone()));
    Ok(metrics)
}

async fn keep_up(metrics: PrometheusHandle) {
    loop {
        tokio::time::sleep(UPKEEP).await;
        metrics.run_upkeep();
    }
}
