use super::facade::{FACADE, Facade};
use super::markdown::Page;
use super::{derived, links, readme, snippets, summary};
use crate::cargo::root;
use crate::sources::files;
use crate::words;
use anyhow::{Context, Result, ensure};
use std::fs;
use std::path::Path;

/// Writes the pages that are generated from the README, and the table of log events.
pub(crate) fn write() -> Result<()> {
    let root = root();
    for (path, text) in generated(&root)? {
        fs::write(root.join(path), text).with_context(|| format!("cannot write {path}"))?;
    }
    Ok(())
}

/// Pages that are generated as a whole or in part, by their paths.
fn generated(root: &Path) -> Result<Vec<(&'static str, String)>> {
    let facade = Facade::parse(&read(root, FACADE)?);
    let mut pages = derived::pages(&read(root, "README.md")?, &facade.table()).to_vec();
    pages.push((words::PAGE, words::page(root, &read(root, words::PAGE)?)?));
    Ok(pages)
}

/// Fails with one line for each violation on a page.
pub(crate) fn check() -> Result<()> {
    let root = root();
    let pages = pages(&root)?;
    let readme = read(&root, "README.md")?;
    let mut wrong = readme::check(&readme);
    wrong.extend(snippets::check_copies(&readme, &snippets::copies(&root)?));
    let text = read(&root, FACADE)?;
    wrong.extend(snippets::check_guides(&pages, &text));
    let facade = Facade::parse(&text);
    wrong.extend(facade.check(|path| root.join(path).exists()));
    wrong.extend(links::check(&pages, |path| root.join(path).exists()));
    wrong.extend(summary::check(&pages));
    for (path, text) in generated(&root)? {
        if read(&root, path)? != text {
            wrong.push(format!("{path} is out of date: run `cargo xtask pages`"));
        }
    }
    println!("{} pages, README.md has {} lines", pages.len(), readme.lines().count());
    ensure!(wrong.is_empty(), "{}", wrong.join("\n"));
    Ok(())
}

pub(super) fn read(root: &Path, path: &str) -> Result<String> {
    fs::read_to_string(root.join(path)).with_context(|| format!("cannot read {path}"))
}

/// Returns all pages below `root`, except those generated from the README.
fn pages(root: &Path) -> Result<Vec<Page>> {
    let paths = files(root, "", ".md")?;
    let paths = paths.into_iter().filter(|path| !derived::PAGES.contains(&path.as_str()));
    paths.map(|path| Ok(Page::new(path.clone(), read(root, &path)?))).collect()
}
