//! Generated scripts on the embedded server and on a real server.

use crate::cargo::{build_program, run as execute};
use crate::packages;
use anyhow::Result;
use std::path::PathBuf;
use std::process::Command;

/// Runs the task as called from the command line.
pub(crate) fn run(arguments: &[String]) -> Result<()> {
    packages::ensure_zookeeper()?;
    let planted = arguments.iter().any(|argument| argument == "--planted");
    let program = program(planted)?;
    execute(Command::new(&program).args(arguments))
}

/// Builds the program in advance for a later stage.
pub(crate) fn build() -> Result<()> {
    program(false).map(|_| ())
}

fn program(planted: bool) -> Result<PathBuf> {
    build_program("docent-differential", "differential", planted)
}

/// Runs the first `scripts` scripts, which are the same each time.
pub(crate) fn stage(scripts: u32) -> Result<()> {
    run(&["--scripts".to_owned(), scripts.to_string()])
}
