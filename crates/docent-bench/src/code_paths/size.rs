use anyhow::{Context, Result};
use std::fs;
use std::path::Path;

/// Size of the code below a folder.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Size {
    pub(super) files: usize,
    /// Lines that are not blank, not comments, and not part of the tests at the end of a file.
    pub(super) lines: usize,
    /// Structs, enums and traits.
    pub(super) types: usize,
}

impl Size {
    /// Measures the Rust files below `folder`, except test files.
    pub(super) fn of(folder: &Path) -> Result<Self> {
        let mut size = Self::default();
        for entry in fs::read_dir(folder).with_context(|| format!("cannot list {}", folder.display()))? {
            let path = entry?.path();
            let name = path.file_stem().and_then(|name| name.to_str()).unwrap_or_default();
            if name == "tests" || name.ends_with("_tests") {
                continue;
            }
            let part = match path.extension().is_some_and(|extension| extension == "rs") {
                true => Self::of_text(&fs::read_to_string(&path)?),
                false if path.is_dir() => Self::of(&path)?,
                false => continue,
            };
            size.files += part.files;
            size.lines += part.lines;
            size.types += part.types;
        }
        Ok(size)
    }

    fn of_text(text: &str) -> Self {
        let end = text.find("#[cfg(test)]\nmod tests {").unwrap_or(text.len());
        let is_code = |line: &&str| !line.is_empty() && !line.starts_with("//");
        let lines: Vec<_> = text[..end].lines().map(str::trim).filter(is_code).collect();
        let types = lines.iter().filter(|line| is_type(line)).count();
        Self { files: 1, lines: lines.len(), types }
    }
}

fn is_type(line: &str) -> bool {
    let definition = match line.strip_prefix("pub") {
        Some(rest) if rest.starts_with('(') => rest.split_once(") ").map_or(rest, |(_, rest)| rest),
        Some(rest) => rest.trim_start(),
        None => line,
    };
    ["struct ", "enum ", "trait "].iter().any(|keyword| definition.starts_with(keyword))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_blank_lines_and_tests_are_not_counted() {
        let text = "//! A file.\n\nuse std::fmt;\n\n/// A type.\npub(crate) struct A {\n    // Private.\n    b: u8,\n}\n\n\
            enum C {}\n\n#[cfg(test)]\nmod tests {\n    struct D;\n}\n";
        assert_eq!(Size::of_text(text), Size { files: 1, lines: 5, types: 2 });
    }
}
