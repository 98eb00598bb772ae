//! Generated scripts on the embedded server and on a real one.

use crate::cargo::{build_planted, build_program, cargo, run as execute};
use crate::packages;
use anyhow::{Context, Result, ensure};
use std::path::Path;
use std::process::{Command, Stdio};

/// Scripts that CI runs.
const SCRIPTS: &str = "2000";

/// The chore as it is called by hand.
pub(crate) fn run(arguments: &[String]) -> Result<()> {
    packages::ensure_zookeeper()?;
    let planted = arguments.iter().any(|argument| argument == "--planted");
    let program = build_program("docent-differential", "differential", planted)?;
    execute(Command::new(&program).args(arguments))?;
    if planted { run_planted_tests(&program) } else { Ok(()) }
}

/// The scripts of CI, which are the same each time.
pub(crate) fn stage() -> Result<()> {
    run(&["--scripts", SCRIPTS].map(str::to_owned))
}

/// Plants the defects that no script finds, and runs the test that does. Prints a table.
///
/// # Errors
/// When a test succeeds with its defect.
fn run_planted_tests(program: &Path) -> Result<()> {
    let listed = Command::new(program).arg("--planted-tests").output()?;
    let listed = String::from_utf8(listed.stdout)?;
    execute(&mut planted_test("--no-run"))?;
    println!("| planted defect | test of `docent-server` |");
    println!("|---|---|");
    for line in listed.lines() {
        let (defect, test) = line.split_once(' ').with_context(|| format!("{line:?} names no test"))?;
        let passes = |planted: &str| -> Result<bool> {
            let mut command = planted_test(&format!("-- --exact {test}"));
            command.env("DOCENT_PLANTED", planted).stdout(Stdio::null()).stderr(Stdio::null());
            Ok(command.status()?.success())
        };
        ensure!(passes("")?, "{test} fails without a defect, too");
        ensure!(!passes(defect)?, "{test} does not find {defect}");
        println!("| {defect} | `{test}` |");
    }
    println!("all {} found", listed.lines().count());
    Ok(())
}

/// Tests of the server in a build with all defects.
fn planted_test(arguments: &str) -> Command {
    let mut command = cargo(&format!("test --quiet --package docent-server --test server {arguments}"));
    build_planted(&mut command);
    command
}
