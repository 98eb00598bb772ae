use super::figures::{Figures, Totals};
use super::one_acquire::AcquirePath;
use super::source::Source;
use crate::cargo::root;
use crate::sources::rust_files;
use anyhow::{Context, Result};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Prints the figures of all crates, or of one and its largest circle. An argument with a `/` is the root of
/// another checkout, whose figures are printed then.
pub(crate) fn run() -> Result<()> {
    let (folders, names): (Vec<_>, Vec<_>) = std::env::args().skip(2).partition(|word| word.contains('/'));
    let root = folders.first().map_or_else(root, PathBuf::from);
    let only = names.first();
    let crates = crates(&root)?;
    println!(
        "crate | files | lines of a file: median, p95 | functions | lines of one: median, p95 | loose files | largest circle | circles over folders, largest | types in three files or more"
    );
    let product = product(&root)?;
    let mut totals = Totals::default();
    let mut own_folders = Vec::new();
    for (name, sources) in crates.iter().filter(|(name, _)| only.is_none_or(|only| only == *name)) {
        let figures = Figures::of(sources);
        println!("{name} | {figures}");
        if only.is_some() {
            println!("the largest circle: {}", figures.circle.join(", "));
        }
        own_folders.extend(figures.spread.own_folder.iter().map(|spread| format!("{spread} ({name})")));
        if product.contains(name) {
            totals.add(&figures);
        }
    }
    if !own_folders.is_empty() {
        println!("in its own folder: {}", own_folders.join(", "));
    }
    if only.is_some() {
        return Ok(());
    }
    let acquire = AcquirePath::read(&root)?;
    match &acquire {
        Some(acquire) => println!("{acquire}"),
        None => println!("files crossed by an uncontended acquire: the docs have no table of them"),
    }
    println!("product, {} crates | {totals}", product.len());
    acquire.map_or(Ok(()), |acquire| acquire.check(&root))
}

/// The files of each crate below `root`, without tests.
fn crates(root: &Path) -> Result<BTreeMap<String, Vec<Source>>> {
    let mut crates: BTreeMap<String, Vec<Source>> = BTreeMap::new();
    for file in rust_files(root, "crates")? {
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
    Ok(crates)
}

/// The crates that users get: `docent`, and all that it depends on.
fn product(root: &Path) -> Result<BTreeSet<String>> {
    let (mut found, mut next) = (BTreeSet::new(), vec!["docent".to_owned()]);
    while let Some(name) = next.pop() {
        let manifest = fs::read_to_string(root.join(format!("crates/{name}/Cargo.toml")))
            .with_context(|| format!("the manifest of {name}"))?;
        if found.insert(name) {
            next.extend(dependencies(&manifest));
        }
    }
    Ok(found)
}

/// Our own crates among the dependencies of one.
fn dependencies(manifest: &str) -> Vec<String> {
    let section = manifest.split("\n[dependencies]\n").nth(1).unwrap_or_default();
    let section = section.split("\n[").next().unwrap_or_default();
    let names = section.lines().filter_map(|line| line.split(['.', ' ', '=']).next());
    names.filter(|name| name.starts_with("docent-")).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_product_is_the_facade_and_all_below_it() {
        let product = product(&root()).unwrap();
        assert!(product.contains("docent-core") && product.contains("docent-proto"));
        assert!(!product.contains("docent-battery") && !product.contains("xtask"));
    }
}
