use crate::cargo::{cargo, run as execute};
use crate::pages;
use anyhow::Result;

/// Applies the suggestions of lints, formats, and writes the pages that are generated from the README.
pub(crate) fn run() -> Result<()> {
    execute(&mut cargo(
        "clippy --fix --workspace --all-targets --all-features --allow-dirty --allow-staged",
    ))?;
    execute(&mut cargo("fmt --all"))?;
    pages::write()
}
