//! Pictures of the console for the guide.

use crate::cargo::{cargo, root, run as execute};
use crate::packages;
use anyhow::Result;

const TEST: &str = "test --workspace --all-features --test console -- --ignored --exact";
const PICTURES: &str = "pictures::the_example_has_pages_worth_a_picture";

/// Writes `docs/guide/console-{light,dark,phone}.png` from the pages of the example `console`.
pub(crate) fn run() -> Result<()> {
    packages::ensure_chromium()?;
    execute(&mut cargo("build --workspace --all-features --example console"))?;
    execute(cargo(&format!("{TEST} {PICTURES}")).env("DOCENT_SCREENSHOTS", root().join("docs/guide")))
}
