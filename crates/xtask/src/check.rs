use crate::auto_traits;
use crate::cargo::{cargo, run as execute, succeeds};
use crate::pages;
use crate::prose;
use crate::rooms;
use crate::stages::Stages;
use crate::structure;
use anyhow::{Result, ensure};
use std::env;
use std::path::{Path, PathBuf};

/// Packages that defects are planted into, and the two that choose them.
const PLANTED: [&str; 9] = [
    "docent-core",
    "docent-locks",
    "docent-election",
    "docent-queue",
    "docent-discovery",
    "docent-config",
    "docent-server",
    "docent-differential",
    "docent-simulation",
];

/// Checks that every commit must pass besides its tests.
pub(crate) fn run() -> Result<()> {
    let mut stages = Stages::start();
    stages.run("format", || execute(&mut cargo("fmt --all --check")))?;
    stages.run("order of folders and crates", rooms::check)?;
    stages.run("files of one acquire", structure::check)?;
    stages.run("table of public types", auto_traits::check)?;
    stages.run("pages", pages::check)?;
    stages.run("prose", prose::run)?;
    stages.run("lints", || {
        execute(&mut cargo("clippy --workspace --all-targets --all-features -- -D warnings"))
    })?;
    stages.run("lints of planted defects", planted)?;
    stages.run("docs", || {
        execute(cargo("doc --workspace --no-deps --all-features").env("RUSTDOCFLAGS", "-D warnings"))
    })?;
    stages.run("default features", default_features)?;
    stages.run("dependencies", dependencies)?;
    stages.finish(None);
    Ok(())
}

/// The code of defects, which only the simulation is built with. Clippy passes the flag to the packages of
/// the workspace alone, so that their dependencies are not built again.
fn planted() -> Result<()> {
    let packages: Vec<String> = PLANTED.iter().map(|package| format!("--package {package}")).collect();
    let flags = "-D warnings --cfg docent_planted";
    execute(&mut cargo(&format!("clippy {} --all-features -- {flags}", packages.join(" "))))
}

/// Packages that only features need are not built without them.
fn default_features() -> Result<()> {
    let tree = cargo("tree --package docent --edges normal --prefix none").output()?;
    ensure!(tree.status.success(), "cargo tree failed: {}", String::from_utf8_lossy(&tree.stderr));
    let tree = String::from_utf8(tree.stdout)?;
    ensure!(tree.lines().any(|line| line.starts_with("docent-core ")), "cargo tree names no package of ours");
    for package in ["zookeeper-client ", "tonic ", "tower "] {
        let found = tree.lines().find(|line| line.starts_with(package));
        ensure!(found.is_none(), "docent depends on {found:?} without its features");
    }
    Ok(())
}

fn dependencies() -> Result<()> {
    if !succeeds(&mut cargo("deny --version")) {
        println!("left out: bans, licences, sources and advisories, because cargo-deny is not installed");
        return Ok(());
    }
    execute(&mut cargo("deny --all-features check bans licenses sources"))?;
    if advisories().is_some_and(|database| database.is_dir()) {
        return execute(&mut cargo("deny --all-features check advisories --disable-fetch"));
    }
    println!("left out: advisories, because there is no database at hand");
    Ok(())
}

/// Folder in which cargo-deny keeps the database once it has fetched it.
fn advisories() -> Option<PathBuf> {
    let home = env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| env::var_os("HOME").map(|home| Path::new(&home).join(".cargo")))?;
    Some(home.join("advisory-dbs"))
}
