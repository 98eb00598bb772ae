use super::facade::FACADE;
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

/// Returns guides that the facade does not compile, and Rust code on any page of `docs` that is not compiled
/// as shown.
pub(super) fn check_guides(pages: &[Page], facade: &str) -> Vec<String> {
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
        if !blocks.is_empty() && !facade.contains(&format!("include_str!(\"../../../{}\")", page.path)) {
            wrong.push(format!("{} contains code, but {FACADE} does not include the page", page.path));
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

    fn guide(code: &str, facade: &str) -> Vec<String> {
        check_guides(&[Page::new("docs/guide/a.md".into(), code.into())], facade)
    }

    #[test]
    fn a_guides_code_is_compiled_by_the_facade() {
        let facade = "#[doc = include_str!(\"../../../docs/guide/a.md\")]";
        assert!(guide("```rust,no_run\nfn a() {}\n```\n", facade).is_empty());
        assert!(guide("no code\n", "").is_empty());
        assert_eq!(guide("```rust\nfn a() {}\n```\n", "").len(), 1);
        assert_eq!(guide("```rust,ignore\nfn a() {}\n```\n", facade).len(), 1);
        assert_eq!(guide("```rust\n# use a;\nfn a() {}\n```\n", facade).len(), 1);
    }
}
