use super::debian;
use super::machine::Machine;
use super::reader::{Counts, Reader};
use super::source::Source;
use super::steps::{self, Step};
use crate::cargo::{root, target};
use anyhow::{Context, Result, bail};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

const README: &str = "README.md";
const QUICK_START: &str = "docs/guide/start.md";
/// A command that CI runs anyway, and that takes longer than all others.
const ALL_TESTS: &str = "cargo xtask test";

/// Follows the pages on this machine; with `--debian`, on a fresh Debian with only Rust and a C compiler.
pub(crate) fn run(arguments: &[String]) -> Result<()> {
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => here(),
        ["--debian"] => debian::isolate(),
        ["--debian", debian::INSIDE] => debian::run(),
        _ => bail!("usage: cargo xtask first-day [--debian]"),
    }
}

/// Folder of the task, inside cargo's build folder.
pub(super) fn folder() -> PathBuf {
    target().join("first-day")
}

fn here() -> Result<()> {
    let folder = folder();
    let source = Source::snapshot(&folder)?;
    let cargo_home = folder.join("cargo-home");
    let path = std::env::var("PATH").unwrap_or_default();
    let mut variables = source.variables(&cargo_home);
    variables.push(("PATH".to_owned(), format!("{}:{path}", cargo_home.join("bin").display())));
    // Not below the checkout: `cargo new` would make the reader's project a member of this workspace.
    let home = tempfile::tempdir().context("cannot create the reader's folder")?;
    let mut machine = Machine::new(None, home.path().to_owned(), variables);
    // For the commands in the checkout.
    machine.set("CARGO_TARGET_DIR", target().display().to_string());
    follow(machine, &folder.join("build"), &root())
}

/// Follows the pages of this checkout on a machine, where the reader's checkout is in `checkout`.
pub(super) fn follow(mut machine: Machine, build: &Path, checkout: &Path) -> Result<()> {
    let started = Instant::now();
    let mut counts = Counts::default();
    let readme = page(README)?;
    let mut reader = Reader::new(README, &mut machine, build, &mut counts)?;
    reader.enter(checkout.to_owned());
    for step in steps::table_commands(&readme) {
        try_out(&mut reader, &step)?;
    }
    reader.machine.end();
    reader.enter(reader.machine.home().to_owned());
    reader.follow(&steps::steps(&readme))?;
    let start = page(QUICK_START)?;
    Reader::new(QUICK_START, &mut machine, build, &mut counts)?.follow(&steps::steps(&start))?;
    println!(
        "{README} and {QUICK_START}: {} command lines ran and {} files were written as printed, {} blocks are not run here; {} s",
        counts.commands,
        counts.files,
        counts.not_run,
        started.elapsed().as_secs()
    );
    Ok(())
}

/// Runs a command for a checkout.
fn try_out(reader: &mut Reader<'_>, step: &Step) -> Result<()> {
    if step.code.starts_with(ALL_TESTS) {
        println!("{README}:{}: not run here, because CI runs it:\n    {}", step.line, step.code);
        reader.counts.not_run += 1;
        return Ok(());
    }
    reader.step(step).with_context(|| format!("{README}:{}: {}", step.line, step.code))
}

fn page(path: &str) -> Result<String> {
    fs::read_to_string(root().join(path)).with_context(|| format!("cannot read {path}"))
}
