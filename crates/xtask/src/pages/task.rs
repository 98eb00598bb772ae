use super::facade::{FACADE, Facade};
use super::markdown::Page;
use super::{derived, links, readme, snippets};
use crate::cargo::root;
use anyhow::{Context, Result, ensure};
use std::fs;
use std::path::Path;

/// Folders without pages of ours.
const LEFT_OUT: [&str; 2] = ["target", "node_modules"];

/// Writes the pages that are made from the README.
pub(crate) fn write() -> Result<()> {
    let root = root();
    let facade = Facade::parse(&read(&root, FACADE)?);
    for (path, text) in derived::pages(&read(&root, "README.md")?, &facade.table()) {
        fs::write(root.join(path), text).with_context(|| format!("cannot write {path}"))?;
    }
    Ok(())
}

/// Fails with one line for each thing that is wrong with a page.
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
    for (path, text) in derived::pages(&readme, &facade.table()) {
        if read(&root, path)? != text {
            wrong.push(format!(
                "{path} differs from what is made of README.md and {FACADE}: run `cargo xtask pages`"
            ));
        }
    }
    println!("{} pages, README.md has {} lines", pages.len(), readme.lines().count());
    ensure!(wrong.is_empty(), "{}", wrong.join("\n"));
    Ok(())
}

pub(super) fn read(root: &Path, path: &str) -> Result<String> {
    fs::read_to_string(root.join(path)).with_context(|| format!("cannot read {path}"))
}

/// All pages below `root`, but those that are made from the README.
fn pages(root: &Path) -> Result<Vec<Page>> {
    let paths = files(root, "", ".md")?;
    let paths = paths.into_iter().filter(|path| !derived::PAGES.contains(&path.as_str()));
    paths.map(|path| Ok(Page::new(path.clone(), read(root, &path)?))).collect()
}

/// Files below `folder` whose names end with `ending`, as paths from `root`, in order.
pub(super) fn files(root: &Path, folder: &str, ending: &str) -> Result<Vec<String>> {
    let (mut files, mut folders) = (Vec::new(), vec![root.join(folder)]);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).with_context(|| format!("cannot list {folder:?}"))? {
            let path = entry?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            if path.is_dir() && !name.starts_with('.') && !LEFT_OUT.contains(&name.as_str()) {
                folders.push(path);
            } else if name.ends_with(ending) {
                files.push(path.strip_prefix(root)?.to_string_lossy().into_owned());
            }
        }
    }
    files.sort();
    Ok(files)
}
