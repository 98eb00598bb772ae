use anyhow::Context;
use std::io;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::LevelFilter;

/// Logs what `RUST_LOG` asks for, such as `docent_core=debug`, to stderr; nothing without it.
///
/// # Errors
/// When it asks for something that cannot be understood.
pub fn log_to_stderr() -> anyhow::Result<()> {
    let filter = EnvFilter::builder()
        .with_default_directive(LevelFilter::OFF.into())
        .from_env()
        .context("RUST_LOG")?;
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(io::stderr).init();
    Ok(())
}
