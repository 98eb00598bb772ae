use anyhow::{Context, Result};
use std::fs;
use std::path::Path;

/// Paths of the Rust files below `folder`, as seen from `root`, sorted. Build folders are left out.
pub(crate) fn rust_files(root: &Path, folder: &str) -> Result<Vec<String>> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        let entries = fs::read_dir(root.join(&folder)).with_context(|| format!("cannot list {folder}"))?;
        for entry in entries {
            let entry = entry?;
            let name = entry.file_name().into_string().ok().context("a file's name is no UTF-8")?;
            let path = format!("{folder}/{name}");
            match entry.file_type()?.is_dir() {
                true if name == "target" => {}
                true => folders.push(path),
                false if name.ends_with(".rs") => found.push(path),
                false => {}
            }
        }
    }
    found.sort();
    Ok(found)
}

/// The numbered lines of a file before its tests, without comments.
pub(crate) fn code(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let end = text.find("#[cfg(test)]\nmod tests {").unwrap_or(text.len());
    let numbered = text[..end].lines().enumerate().map(|(index, line)| (index + 1, line));
    numbered.filter(|(_, line)| !line.trim_start().starts_with("//"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cargo::root;

    #[test]
    fn rust_files_are_found_in_subfolders_and_nothing_else_is() {
        let found = rust_files(&root(), "crates").unwrap();
        assert!(found.contains(&"crates/xtask/src/pages/task.rs".to_owned()));
        assert!(found.iter().all(|path| path.ends_with(".rs")));
        assert!(found.is_sorted());
    }
}
