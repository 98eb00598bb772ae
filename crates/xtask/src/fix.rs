use crate::cargo::{cargo, run as execute};
use anyhow::Result;

/// Applies what lints suggest, and formats.
pub(crate) fn run() -> Result<()> {
    execute(&mut cargo(
        "clippy --fix --workspace --all-targets --all-features --allow-dirty --allow-staged",
    ))?;
    execute(&mut cargo("fmt --all"))
}
