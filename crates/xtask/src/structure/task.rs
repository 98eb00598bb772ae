use super::figures::Figures;
use super::source::Source;
use crate::cargo::root;
use crate::sources::rust_files;
use anyhow::{Context, Result};
use std::collections::BTreeMap;
use std::fs;

/// Prints the figures of all crates, or of one and its largest circle.
pub(crate) fn run() -> Result<()> {
    let root = root();
    let mut crates: BTreeMap<String, Vec<Source>> = BTreeMap::new();
    for file in rust_files(&root, "crates")? {
        let Some((name, path)) = file.strip_prefix("crates/").and_then(|file| file.split_once("/src/"))
        else {
            continue;
        };
        if path.contains("tests/") || path.ends_with("tests.rs") {
            continue;
        }
        let text = fs::read_to_string(root.join(&file)).with_context(|| file.clone())?;
        crates.entry(name.to_owned()).or_default().push(Source { path: path.to_owned(), text });
    }
    println!(
        "crate | files | lines of a file: median, p95 | functions | lines of one: median, p95 | loose files | largest circle | over folders | types in three files or more"
    );
    let only = std::env::args().nth(2);
    for (name, sources) in crates.iter().filter(|(name, _)| only.as_ref().is_none_or(|only| only == *name)) {
        let figures = Figures::of(sources);
        println!("{name} | {figures}");
        if only.is_some() {
            println!("the largest circle: {}", figures.circle.join(", "));
        }
    }
    Ok(())
}
