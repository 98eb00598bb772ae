use super::report::Report;
use super::width;
use crate::cargo::root;
use crate::sources::rust_files;
use anyhow::{Context, Result};
use std::fs;

/// Folders whose Rust files are measured.
const FOLDERS: [&str; 3] = ["crates", "tests", "examples"];

/// Measures the docs and comments of all Rust files.
///
/// # Errors
/// When more doc sentences than allowed begin with a word that names nothing, or a comment line is wider than
/// the formatter allows.
pub(crate) fn run() -> Result<()> {
    let root = root();
    let read =
        |path: &str| fs::read_to_string(root.join(path)).with_context(|| format!("cannot read {path}"));
    let mut report = Report::new(width::of_formatter(&read("rustfmt.toml")?)?);
    for folder in FOLDERS {
        for path in rust_files(&root, folder)? {
            report.add(&path, &read(&path)?);
        }
    }
    println!("{report}");
    report.verdict()
}
