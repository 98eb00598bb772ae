//! The commit that is released: everything is committed, and the tag names it.

use crate::cargo::root;
use anyhow::{Context, Result, ensure};
use std::process::Command;

/// What git knows about the released commit.
#[derive(Debug, Default)]
struct State {
    changed: Vec<String>,
    head: String,
    /// Commit of the version's tag, if there is one.
    tagged: Option<String>,
    /// Versions of all tags.
    versions: Vec<String>,
}

/// Checks that all changes are committed, that `version` is higher than those of other tags, and that its tag
/// names this commit. In a `dry_run` the tag may be missing.
pub(super) fn check(version: &str, dry_run: bool) -> Result<()> {
    let tag = format!("refs/tags/v{version}^{{commit}}");
    let tags = git(&["tag", "--list", "v*"])?;
    let state = State {
        changed: git(&["status", "--porcelain"])?.lines().map(str::to_owned).collect(),
        head: git(&["rev-parse", "HEAD"])?,
        tagged: git(&["rev-parse", "--verify", "--quiet", &tag]).ok(),
        versions: tags.lines().map(|tag| tag.trim_start_matches('v').to_owned()).collect(),
    };
    println!("{}", state.check(version, dry_run)?);
    Ok(())
}

impl State {
    /// Returns what to print.
    fn check(&self, version: &str, dry_run: bool) -> Result<String> {
        ensure!(self.changed.is_empty(), "commit these changes first:\n{}", self.changed.join("\n"));
        let own = numbers(version)?;
        for other in self.versions.iter().filter(|other| *other != version) {
            ensure!(numbers(other)? < own, "version {version} must be higher than {other}, which is tagged");
        }
        match &self.tagged {
            Some(tagged) => {
                let head = &self.head;
                ensure!(tagged == head, "the tag v{version} names {tagged}, and the checkout is {head}");
                Ok(format!("the tag v{version} names this commit"))
            }
            None => {
                ensure!(dry_run, "tag this commit first: git tag -a v{version} -m v{version}");
                Ok(format!("the tag v{version} does not exist yet"))
            }
        }
    }
}

/// Returns the numbers of a version, to compare it with another.
fn numbers(version: &str) -> Result<[u64; 3]> {
    let numbers: Option<Vec<u64>> = version.split('.').map(|number| number.parse().ok()).collect();
    let numbers = numbers.and_then(|numbers| numbers.try_into().ok());
    numbers.with_context(|| format!("version {version:?} must consist of three numbers"))
}

fn git(arguments: &[&str]) -> Result<String> {
    let output =
        Command::new("git").args(arguments).current_dir(root()).output().context("cannot run git")?;
    ensure!(output.status.success(), "git {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    Ok(String::from_utf8(output.stdout)?.trim_end().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tagged(commit: Option<&str>) -> State {
        State { head: "aa".into(), tagged: commit.map(str::to_owned), ..State::default() }
    }

    #[test]
    fn the_tag_must_name_the_checked_out_commit() {
        assert!(tagged(Some("aa")).check("0.1.0", false).is_ok());
        let error = tagged(Some("bb")).check("0.1.0", true).unwrap_err().to_string();
        assert_eq!(error, "the tag v0.1.0 names bb, and the checkout is aa");
    }

    #[test]
    fn only_a_dry_run_accepts_a_missing_tag() {
        assert_eq!(tagged(None).check("0.1.0", true).unwrap(), "the tag v0.1.0 does not exist yet");
        assert!(tagged(None).check("0.1.0", false).is_err());
    }

    #[test]
    fn changes_must_be_committed() {
        let state = State { changed: vec![" M README.md".into()], ..tagged(Some("aa")) };
        assert!(state.check("0.1.0", true).unwrap_err().to_string().ends_with(" M README.md"));
    }

    #[test]
    fn a_version_is_higher_than_those_before() {
        let versions = vec!["0.9.0".into(), "0.10.0".into()];
        let state = State { versions, ..tagged(None) };
        assert!(state.check("0.10.1", true).is_ok());
        assert!(state.check("0.10.0", true).is_ok());
        let error = state.check("0.9.1", true).unwrap_err().to_string();
        assert_eq!(error, "version 0.9.1 must be higher than 0.10.0, which is tagged");
    }
}
