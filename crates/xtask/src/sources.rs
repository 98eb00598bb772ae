use anyhow::{Context, Result};
use std::fs;
use std::path::Path;

/// Names of folders that contain no files of the project.
const SKIPPED: [&str; 2] = ["target", "node_modules"];

/// Paths of the Rust files below `folder`, relative to `root`, in order.
pub(crate) fn rust_files(root: &Path, folder: &str) -> Result<Vec<String>> {
    files(root, folder, ".rs")
}

/// Paths of the files below `folder` whose names end with `ending`, relative to `root`, in order. Hidden
/// folders and build folders are skipped.
pub(crate) fn files(root: &Path, folder: &str, ending: &str) -> Result<Vec<String>> {
    let (mut files, mut folders) = (Vec::new(), vec![root.join(folder)]);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).with_context(|| format!("cannot list {}", folder.display()))? {
            let entry = entry?;
            let name = entry.file_name().into_string().ok().context("a file name is not valid UTF-8")?;
            if entry.file_type()?.is_dir() {
                if !name.starts_with('.') && !SKIPPED.contains(&name.as_str()) {
                    folders.push(entry.path());
                }
            } else if name.ends_with(ending) {
                files.push(entry.path().strip_prefix(root)?.to_string_lossy().into_owned());
            }
        }
    }
    files.sort();
    Ok(files)
}

/// Returns the text of a line that contains only a comment, without its slashes.
pub(crate) fn comment(line: &str) -> Option<&str> {
    let text = line.trim_start().strip_prefix("//")?;
    Some(text.trim_start_matches(['/', '!']).trim())
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
