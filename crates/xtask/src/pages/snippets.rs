use super::guide;
use super::markdown::{Block, Page, blocks};
use anyhow::{Context, Result};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// Folder of the README's programs. One file there includes all others.
const COPIES: &str = "tests/readme";
const MAIN: &str = "main.rs";

/// Returns the compiled programs of the README, by name.
pub(super) fn copies(root: &Path) -> Result<BTreeMap<String, String>> {
    let folder = root.join(COPIES);
    let mut copies = BTreeMap::new();
    for entry in fs::read_dir(&folder).with_context(|| format!("cannot list {folder:?}"))? {
        let entry = entry?;
        copies.insert(entry.file_name().to_string_lossy().into_owned(), fs::read_to_string(entry.path())?);
    }
    Ok(copies)
}

/// Returns differences between the README's Rust code and its copies, which are compiled and run.
pub(super) fn check_copies(readme: &str, copies: &BTreeMap<String, String>) -> Vec<String> {
    let mut wrong = Vec::new();
    let blocks: Vec<Block> = blocks(readme).into_iter().filter(Block::is_rust).collect();
    for block in &blocks {
        if !copies.values().any(|copy| *copy == block.code) {
            wrong.push(format!("README.md:{}: no file in {COPIES} has the same code", block.line));
        }
    }
    let main = copies.get(MAIN).map_or("", String::as_str);
    for (name, copy) in copies.iter().filter(|(name, _)| *name != MAIN) {
        if !blocks.iter().any(|block| block.code == *copy) {
            wrong.push(format!("{COPIES}/{name}: no code block in README.md is the same"));
        }
        if !main.contains(&format!("include!(\"{name}\")")) {
            wrong.push(format!("{COPIES}/{name} is not included in {MAIN}"));
        }
    }
    wrong
}

/// Returns Rust code on any page of `docs` that is not compiled as shown.
pub(super) fn check_guides(pages: &[Page]) -> Vec<String> {
    let mut wrong = Vec::new();
    for page in pages.iter().filter(|page| page.path.starts_with("docs/")) {
        let blocks: Vec<Block> = blocks(&page.text).into_iter().filter(Block::is_rust).collect();
        for block in &blocks {
            if block.info.split(',').any(|word| word == "ignore") {
                wrong.push(format!("{}:{}: code that is not compiled", page.path, block.line));
            }
            if block.hidden().next().is_some() {
                wrong.push(format!(
                    "{}:{}: hidden lines, which code hosting sites show",
                    page.path, block.line
                ));
            }
        }
        if !blocks.is_empty() && !guide::is_compiled(&page.path) {
            wrong.push(format!("{} contains code, but only the code of guides is compiled", page.path));
        }
    }
    wrong
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with_copy(copy: &str, main: &str) -> Vec<String> {
        let copies =
            [("start.rs", copy), (MAIN, main)].map(|(name, text)| (name.to_owned(), text.to_owned()));
        check_copies("```rust\nfn main() {}\n```\n", &BTreeMap::from(copies))
    }

    #[test]
    fn a_program_is_compiled_as_printed_in_the_readme() {
        assert!(with_copy("fn main() {}\n", "include!(\"start.rs\");\n").is_empty());
    }

    #[test]
    fn a_program_that_differs_from_its_copy_is_reported_on_both_sides() {
        let wrong = with_copy("fn main() { }\n", "include!(\"start.rs\");\n");
        let expected = [
            "README.md:1: no file in tests/readme has the same code",
            "tests/readme/start.rs: no code block in README.md is the same",
        ];
        assert_eq!(wrong, expected);
    }

    #[test]
    fn a_copy_that_is_not_included_is_not_compiled() {
        assert_eq!(with_copy("fn main() {}\n", "").len(), 1);
    }

    fn wrong(path: &str, code: &str) -> usize {
        check_guides(&[Page::new(path.into(), code.into())]).len()
    }

    #[test]
    fn code_is_compiled_as_shown_and_only_in_guides() {
        assert_eq!(wrong("docs/guide/a.md", "```rust,no_run\nfn a() {}\n```\n"), 0);
        assert_eq!(wrong("docs/a.md", "no code\n"), 0);
        assert_eq!(wrong("docs/a.md", "```rust\nfn a() {}\n```\n"), 1);
        assert_eq!(wrong("docs/guide/a.md", "```rust,ignore\nfn a() {}\n```\n"), 1);
        assert_eq!(wrong("docs/guide/a.md", "```rust\n# use a;\nfn a() {}\n```\n"), 1);
    }
}
