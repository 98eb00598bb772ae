//! `cargo xtask release`: verifies what must hold for a release, and publishes all crates.

mod changelog;
mod features;
mod fresh;
mod manifests;
mod minimal;
mod packed;
mod plan;
mod publish;
mod published;
mod registry;
mod rust;
mod semver;
mod state;
mod unpacked;

use crate::cargo::cargo;
use crate::deny;
use crate::stages::Stages;
use anyhow::{Context, Result, bail};
use published::Published;

/// Names of the stages, in order.
const STAGES: [&str; 12] = [
    "commit and tag",
    "changelog",
    "manifests and licence texts",
    "dependencies",
    "semver",
    "packages",
    "tests",
    "fresh project",
    "lowest versions",
    "oldest Rust",
    "docs.rs",
    "features",
];

/// Verifies all that must hold for a release. Without `--dry-run`, publishes all crates afterwards. With
/// `--dry-run`, stages can be named, and only these run.
///
/// # Errors
///
/// Fails if a check fails, in which case nothing is published, or if crates.io refuses a crate. A repeated
/// run skips the crates that are published already.
pub(crate) fn run(arguments: &[String]) -> Result<()> {
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let (dry_run, chosen) = match &arguments[..] {
        [] => (false, &STAGES[..]),
        ["--dry-run"] => (true, &STAGES[..]),
        ["--dry-run", stages @ ..] => (true, stages),
        _ => bail!("the only option is --dry-run, optionally with the names of stages"),
    };
    if let Some(unknown) = chosen.iter().find(|stage| !STAGES.contains(stage)) {
        bail!("there is no stage {unknown:?}; the stages are {}", STAGES.join(", "));
    }
    let published = Published::read()?;
    println!("{} in this order: {}", published.version(), published.names().join(", "));
    verify(&published, dry_run, chosen)?;
    if dry_run {
        println!("nothing was published");
        return Ok(());
    }
    publish::run(&published)
}

/// Runs the chosen stages, even after one has failed.
fn verify(published: &Published, dry_run: bool, chosen: &[&str]) -> Result<()> {
    let version = published.version();
    let mut stages = Stages::start();
    for name in STAGES.into_iter().filter(|name| chosen.contains(name)) {
        stages.check(name, || match name {
            "commit and tag" => state::check(&version, dry_run),
            "changelog" => changelog::check(&version, dry_run),
            "manifests and licence texts" => manifests(),
            "dependencies" => deny::check(),
            "semver" => semver::check(published),
            "packages" => packed::pack(published),
            "tests" => unpacked::test(published),
            "fresh project" => fresh::check(&packed::Packed::of(published)?),
            "lowest versions" => minimal::check(&packed::Packed::of(published)?),
            "oldest Rust" => oldest_rust(),
            "docs.rs" => rust::docs(published),
            "features" => features::check(published),
            other => bail!("the stage {other} does nothing"),
        });
    }
    stages.finish_checks()
}

/// Checks the manifests of all published crates, and that each package contains the licence texts.
pub(crate) fn manifests() -> Result<()> {
    let published = Published::read()?;
    manifests::check(&published)?;
    for name in published.names() {
        let listed = cargo(&format!("package --list --allow-dirty --package {name}")).output()?;
        packed::check_contents(name, &String::from_utf8(listed.stdout)?)?;
    }
    Ok(())
}

/// Checks that all published crates compile with the Rust version that their manifests state.
pub(crate) fn oldest_rust() -> Result<()> {
    let published = Published::read().context("cannot read the manifests")?;
    rust::check_oldest(&published)
}
