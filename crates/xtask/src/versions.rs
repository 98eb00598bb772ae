use crate::cargo::{cargo, run as execute};
use crate::stages::Stages;
use crate::{newer, packages};
use anyhow::Result;
use std::process::Command;

/// Environment variable that makes the embedded server of a test behave as this version.
pub(crate) const EMBEDDED_AS: &str = "DOCENT_EMBEDDED_AS";

/// Suites whose tests run on a real server.
const SUITES: [&str; 6] = ["core", "locks", "queue", "config", "discovery", "election"];

/// Runs all suites, or the named ones, on a newer ZooKeeper than Debian's, which is fetched, and on the
/// embedded server that behaves as this version.
///
/// # Errors
///
/// Fails if a test fails, or if a suite does not exist.
pub(crate) fn run(arguments: &[String]) -> Result<()> {
    let known = |suite: &&String| SUITES.contains(&suite.as_str());
    anyhow::ensure!(arguments.iter().all(|suite| known(&suite)), "a suite must be one of {SUITES:?}");
    let chosen: Vec<&str> = match arguments {
        [] => SUITES.to_vec(),
        some => some.iter().map(String::as_str).collect(),
    };
    let mut stages = Stages::start();
    let home = stages.run("packages", || {
        packages::ensure_java()?;
        newer::home()
    })?;
    let embedded =
        stages.run("embedded as 3.9", || execute(suites(&chosen, &["embedded::"]).env(EMBEDDED_AS, "3.9")));
    let real = stages.run("real", || {
        let mut command = suites(&chosen, &["real::", "--include-ignored"]);
        execute(command.env("ZOOKEEPER_HOME", &home))
    });
    stages.finish(None);
    embedded.and(real)
}

/// Returns the command that runs suites, with the same build as [`test`](crate::test).
fn suites(names: &[&str], filters: &[&str]) -> Command {
    let mut command = cargo("test --workspace --all-features --no-fail-fast");
    for name in names {
        command.args(["--test", name]);
    }
    command.arg("--").args(filters);
    command
}
