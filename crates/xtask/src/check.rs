use crate::book;
use crate::cargo::{cargo, run as execute};
use crate::comment_width;
use crate::deny;
use crate::pages;
use crate::release;
use crate::rooms;
use crate::stages::Stages;
use crate::words;
use anyhow::{Result, bail, ensure};

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

const CHECKS: [Check; 10] = [
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
];

/// Checks that need more time, or install what they need.
const RELEASE_CHECKS: [Check; 3] = [
    ("manifests and licence texts", release::manifests),
    ("oldest Rust", release::oldest_rust),
    ("dependencies", deny::check),
];

/// Runs the checks that every commit must pass besides its tests. All checks run, even after one has failed.
///
/// # Errors
///
/// Fails if a check fails, or if an argument is unknown.
pub(crate) fn run(arguments: &[String]) -> Result<()> {
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let more = match arguments[..] {
        [] => &[("dependencies", deny::check_if_installed as fn() -> Result<()>)][..],
        ["--release"] => &RELEASE_CHECKS,
        _ => bail!("the only option is --release"),
    };
    let mut stages = Stages::start();
    for (name, check) in CHECKS.iter().chain(more) {
        stages.check(name, check);
    }
    stages.finish_checks()
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
