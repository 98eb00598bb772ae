use super::facade::{FACADE, Facade};
use super::markdown::Page;
use super::{derived, guide, links, readme, registry, snippets, summary};
use crate::cargo::root;
use crate::sources::files;
use crate::words;
use anyhow::{Context, Result, ensure};
use std::fs;
use std::path::Path;

/// Writes the table of log events, the pages that are generated from the README, and the guides of the
/// facade.
pub(crate) fn write() -> Result<()> {
    let root = root();
    // The guides of the facade contain the table.
    let events = words::page(&root, &read(&root, words::PAGE)?)?;
    fs::write(root.join(words::PAGE), events)?;
    fs::create_dir_all(root.join(guide::MODULE))?;
    let generated = generated(&root)?;
    for (path, text) in &generated {
        fs::write(root.join(path), text).with_context(|| format!("cannot write {path}"))?;
    }
    for path in leftover(&root, &generated)? {
        fs::remove_file(root.join(&path)).with_context(|| format!("cannot remove {path}"))?;
    }
    Ok(())
}

/// Files that are generated as a whole, by their paths.
fn generated(root: &Path) -> Result<Vec<(String, String)>> {
    let facade = Facade::parse(&read(root, FACADE)?);
    let derived = derived::pages(&read(root, "README.md")?, &facade.table());
    let mut generated = guide::files(&pages(root)?)?;
    generated.extend(derived.map(|(path, text)| (path.to_owned(), text)));
    Ok(generated)
}

/// Returns the text of the page at `path` as part of the book.
pub(crate) fn for_book(root: &Path, path: &str, text: &str) -> String {
    summary::for_book(path, text, |path| root.join(path).is_file())
}

/// Paths of files in the folder of generated guides that are not generated.
fn leftover(root: &Path, generated: &[(String, String)]) -> Result<Vec<String>> {
    let mut present = files(root, guide::MODULE, "")?;
    present.retain(|present| generated.iter().all(|(path, _)| path != present));
    Ok(present)
}

/// Fails with one line for each violation on a page.
pub(crate) fn check() -> Result<()> {
    let root = root();
    let pages = pages(&root)?;
    let readme = read(&root, "README.md")?;
    let mut wrong = readme::check(&readme);
    wrong.extend(snippets::check_copies(&readme, &snippets::copies(&root)?));
    let text = read(&root, FACADE)?;
    wrong.extend(snippets::check_guides(&pages));
    let facade = Facade::parse(&text);
    wrong.extend(facade.check());
    wrong.extend(links::check(&pages, |path| root.join(path).exists()));
    wrong.extend(summary::check(&pages));
    let manifest = |folder: &str| read(&root, &format!("{folder}/Cargo.toml"));
    let published = |folder: &str| manifest(folder).is_ok_and(|text| !text.contains("publish = false"));
    wrong.extend(registry::check(&pages, published));
    wrong.extend(outdated(&root)?);
    println!("{} pages, README.md has {} lines", pages.len(), readme.lines().count());
    ensure!(wrong.is_empty(), "{}", wrong.join("\n"));
    Ok(())
}

/// Returns the generated files that differ from what would be generated now.
fn outdated(root: &Path) -> Result<Vec<String>> {
    let generated = generated(root)?;
    let mut outdated = leftover(root, &generated)?;
    let events = read(root, words::PAGE)?;
    if words::page(root, &events)? != events {
        outdated.push(words::PAGE.to_owned());
    }
    let differs = |(path, text): &&(String, String)| read(root, path).ok().as_ref() != Some(text);
    outdated.extend(generated.iter().filter(differs).map(|(path, _)| path.clone()));
    Ok(outdated.iter().map(|path| format!("{path} is out of date: run `cargo xtask pages`")).collect())
}

pub(super) fn read(root: &Path, path: &str) -> Result<String> {
    fs::read_to_string(root.join(path)).with_context(|| format!("cannot read {path}"))
}

/// Returns true for a page that is generated as a whole.
pub(crate) fn is_generated(path: &str) -> bool {
    derived::PAGES.contains(&path) || path.starts_with(guide::MODULE)
}

/// Returns all pages below `root`, except generated ones.
fn pages(root: &Path) -> Result<Vec<Page>> {
    let paths = files(root, "", ".md")?;
    let paths = paths.into_iter().filter(|path| !is_generated(path));
    paths.map(|path| Ok(Page::new(path.clone(), read(root, &path)?))).collect()
}
