//! Planted defects that neither the simulation nor a script reveals. The catalogue names a test that finds
//! each.

use crate::cargo::{build_planted, build_program, cargo};
use anyhow::{Context, Result, bail, ensure};
use std::process::{Command, Stdio};

/// Runs the test of each defect without and with the defect, and prints a table. With `only`, it runs the
/// tests of one defect.
///
/// # Errors
///
/// Fails if a test fails without its defect, or passes with it.
pub(crate) fn run(only: Option<&str>) -> Result<()> {
    let simulation = build_program("docent-simulation", "simulation", true)?;
    let listed = Command::new(simulation).arg("--list-planted-tests").output()?;
    let listed = String::from_utf8(listed.stdout)?;
    let mut found = 0;
    println!("| planted defect | test |");
    println!("|---|---|");
    for line in listed.lines() {
        let (defect, test) = line.split_once(' ').with_context(|| format!("{line:?} names no test"))?;
        if only.is_some_and(|only| only != defect) {
            continue;
        }
        ensure!(passes(test, "")?, "{test} fails even without a defect");
        ensure!(!passes(test, defect)?, "{test} does not find {defect}");
        println!("| {defect} | `{test}` |");
        found += 1;
    }
    match only {
        Some(only) if found == 0 => bail!("no test finds a defect with the name {only:?}"),
        _ => println!("all {found} defects found"),
    }
    Ok(())
}

/// Runs one test of a build with all defects, of which it plants one, or none for `""`.
fn passes(test: &str, defect: &str) -> Result<bool> {
    let (binary, name) = test.rsplit_once(' ').with_context(|| format!("{test:?} names no test"))?;
    let mut command = cargo(&format!("test --quiet --package {binary} -- --exact {name}"));
    build_planted(&mut command);
    let output = command.env("DOCENT_PLANTED", defect).stderr(Stdio::piped()).output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    // The filter of a missing test matches nothing, so its run passes as well.
    ensure!(
        text.contains("running 1 test"),
        "{test} did not run: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    Ok(output.status.success())
}
