use crate::book;
use crate::cargo::{cargo, run as execute, succeeds};
use crate::comment_width;
use crate::pages;
use crate::rooms;
use crate::stages::Stages;
use crate::words;
use anyhow::{Result, ensure};
use std::env;
use std::path::{Path, PathBuf};

/// Packages that contain planted defects, and the two that choose the defects.
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

/// A check and its name.
type Check = (&'static str, fn() -> Result<()>);

const CHECKS: [Check; 11] = [
    ("format", || execute(&mut cargo("fmt --all --check"))),
    ("width of comments", comment_width::check),
    ("order of folders and crates", rooms::check),
    ("pages", pages::check),
    ("messages", words::check),
    ("prose", words::print),
    ("lints", || execute(&mut cargo("clippy --workspace --all-targets --all-features -- -D warnings"))),
    ("lints of planted defects", planted),
    ("docs", docs),
    ("default features", default_features),
    ("dependencies", dependencies),
];

/// Runs the checks that every commit must pass besides its tests. All checks run, even after one has failed.
pub(crate) fn run() -> Result<()> {
    let mut stages = Stages::start();
    let mut failed = Vec::new();
    for (name, check) in CHECKS {
        if let Err(error) = stages.run(name, check) {
            eprintln!("error: {error:#}");
            failed.push(name);
        }
    }
    stages.finish(None);
    ensure!(failed.is_empty(), "failed: {}", failed.join(", "));
    Ok(())
}

/// Renders the documentation of all crates, and checks the links of the front page and the guides.
fn docs() -> Result<()> {
    execute(cargo("doc --workspace --no-deps --all-features").env("RUSTDOCFLAGS", "-D warnings"))?;
    book::check_docs()
}

/// Lints the code of planted defects, which only the simulation is built with. Clippy passes the flag to the
/// packages of the workspace alone, so their dependencies are not rebuilt.
fn planted() -> Result<()> {
    let packages: Vec<String> = PLANTED.iter().map(|package| format!("--package {package}")).collect();
    let flags = "-D warnings --cfg docent_planted";
    execute(&mut cargo(&format!("clippy {} --all-features -- {flags}", packages.join(" "))))
}

/// Checks that packages which only features need are not built without the features.
fn default_features() -> Result<()> {
    let tree = cargo("tree --package docent --edges normal --prefix none").output()?;
    ensure!(tree.status.success(), "cargo tree failed: {}", String::from_utf8_lossy(&tree.stderr));
    let tree = String::from_utf8(tree.stdout)?;
    ensure!(
        tree.lines().any(|line| line.starts_with("docent-core ")),
        "cargo tree lists no package of this workspace"
    );
    for package in ["zookeeper-client ", "tonic ", "tower "] {
        let found = tree.lines().find(|line| line.starts_with(package));
        ensure!(found.is_none(), "docent depends on {found:?} without its features");
    }
    Ok(())
}

fn dependencies() -> Result<()> {
    if !succeeds(&mut cargo("deny --version")) {
        println!("skipped bans, licences, sources and advisories, because cargo-deny is not installed");
        return Ok(());
    }
    execute(&mut cargo("deny --all-features check bans licenses sources"))?;
    if advisories().is_some_and(|database| database.is_dir()) {
        return execute(&mut cargo("deny --all-features check advisories --disable-fetch"));
    }
    println!("skipped advisories, because cargo-deny has not fetched its database");
    Ok(())
}

/// Returns the folder in which cargo-deny keeps the database after it has fetched it.
fn advisories() -> Option<PathBuf> {
    let home = env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| env::var_os("HOME").map(|home| Path::new(&home).join(".cargo")))?;
    Some(home.join("advisory-dbs"))
}
