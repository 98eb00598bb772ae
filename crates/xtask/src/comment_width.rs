//! Checks the width of comments, which the formatter does not wrap.

use crate::cargo::root;
use crate::sources::{comment, rust_files};
use anyhow::{Context, Result, ensure};
use std::fs;

/// Fails if a comment line is wider than the formatter's limit for code.
pub(crate) fn check() -> Result<()> {
    let root = root();
    let read =
        |path: &str| fs::read_to_string(root.join(path)).with_context(|| format!("cannot read {path}"));
    let width = of_formatter(&read("rustfmt.toml")?)?;
    let mut wide = Vec::new();
    for folder in ["crates", "tests", "examples"] {
        for path in rust_files(&root, folder)? {
            let text = read(&path)?;
            let lines = text.lines().zip(1..).filter(|(line, _)| is_too_wide(line, width));
            wide.extend(
                lines.map(|(line, number)| format!("{path}:{number}: {} columns", line.chars().count())),
            );
        }
    }
    ensure!(wide.is_empty(), "comments wider than {width} columns:\n{}", wide.join("\n"));
    Ok(())
}

/// Returns the maximum line width from the formatter's settings.
fn of_formatter(settings: &str) -> Result<usize> {
    let setting = |line: &str| line.strip_prefix("max_width")?.trim().strip_prefix('=')?.trim().parse().ok();
    settings.lines().find_map(setting).context("rustfmt.toml has no max_width")
}

/// Returns true if the comment in `line` is wider than `width` and could be wrapped.
fn is_too_wide(line: &str, width: usize) -> bool {
    line.chars().count() > width && comment(line).is_some_and(can_be_wrapped)
}

/// Returns false for a single word such as an address, for the definition of a link, and for a row of a
/// table.
fn can_be_wrapped(text: &str) -> bool {
    let text = text.trim_start_matches(['-', '*', ' ']);
    let link = text.starts_with('[') && text.contains("]: ");
    !link && !text.starts_with('|') && text.contains(' ')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_formatters_width_is_read() {
        assert_eq!(of_formatter("style_edition = \"2024\"\nmax_width = 110\n").unwrap(), 110);
        assert!(of_formatter("style_edition = \"2024\"\n").is_err());
    }

    #[test]
    fn a_wide_comment_is_found() {
        for line in ["// two words", "    /// a doc", "//! an inner doc", "/// - an item"] {
            let width = line.chars().count();
            assert!(is_too_wide(line, width - 1), "{line}");
            assert!(!is_too_wide(line, width), "{line}");
        }
    }

    #[test]
    fn width_is_counted_in_characters() {
        assert!(!is_too_wide("// ééé ééé", 10));
    }

    #[test]
    fn lines_that_cannot_be_wrapped_are_excused() {
        for line in [
            "// https://example.org",
            "/// - https://example.org",
            "/// [a name]: https://example.org",
            "/// | a | b |",
        ] {
            assert!(!is_too_wide(line, 5), "{line}");
        }
    }

    #[test]
    fn code_is_not_measured() {
        assert!(!is_too_wide("let address = \"https://example.org\"; // a few words", 5));
    }
}
