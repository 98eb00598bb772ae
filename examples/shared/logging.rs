use anyhow::Context;
use std::io;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::LevelFilter;

/// Logs to stderr what `RUST_LOG` selects, such as `docent=debug`; logs nothing without it.
///
/// # Errors
/// If the value of `RUST_LOG` is invalid.
pub fn log_to_stderr() -> anyhow::Result<()> {
    let filter = EnvFilter::builder()
        .with_default_directive(LevelFilter::OFF.into())
        .from_env()
        .context("RUST_LOG")?;
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(io::stderr).init();
    Ok(())
}
