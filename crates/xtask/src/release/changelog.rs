use crate::cargo::root;
use anyhow::{Context, Result, ensure};
use std::fs;

/// Checks that the changelog describes `version`, with the day of its release unless this is a `dry_run`.
pub(super) fn check(version: &str, dry_run: bool) -> Result<()> {
    check_text(&fs::read_to_string(root().join("CHANGELOG.md"))?, version, dry_run)
}

fn check_text(text: &str, version: &str, dry_run: bool) -> Result<()> {
    let (day, body) = section(text, version)
        .with_context(|| format!("CHANGELOG.md has no section `## {version} - YYYY-MM-DD`"))?;
    ensure!(!body.trim().is_empty(), "the section {version} of CHANGELOG.md is empty");
    ensure!(
        is_day(day) || dry_run && day == "unreleased",
        "the section {version} of CHANGELOG.md must name the day of the release as YYYY-MM-DD, not {day:?}"
    );
    Ok(())
}

/// Returns what follows the version in the heading of its section, and the text of the section.
fn section<'a>(text: &'a str, version: &str) -> Option<(&'a str, &'a str)> {
    text.split("\n## ").skip(1).find_map(|section| {
        let (heading, body) = section.split_once('\n')?;
        let (named, day) = heading.split_once(" - ")?;
        (named == version).then_some((day.trim(), body))
    })
}

fn is_day(text: &str) -> bool {
    let shape: String = text.chars().map(|c| if c.is_ascii_digit() { '0' } else { c }).collect();
    shape == "0000-00-00"
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "# Changelog\n\n## 0.2.0 - unreleased\n\n- New.\n\n## 0.1.0 - 2026-01-31\n\n- First.\n\n## 0.0.1 - 2025-01-01\n\n";

    #[test]
    fn a_release_has_a_section_with_its_day() {
        assert!(check_text(TEXT, "0.1.0", false).is_ok());
        assert!(check_text(TEXT, "0.3.0", true).unwrap_err().to_string().contains("no section `## 0.3.0"));
        assert!(check_text(TEXT, "0.0.1", false).unwrap_err().to_string().ends_with("is empty"));
    }

    #[test]
    fn only_a_dry_run_accepts_a_section_without_a_day() {
        assert!(check_text(TEXT, "0.2.0", true).is_ok());
        assert!(check_text(TEXT, "0.2.0", false).unwrap_err().to_string().contains("not \"unreleased\""));
    }
}
