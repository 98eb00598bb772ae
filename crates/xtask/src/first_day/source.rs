//! This checkout, in place of the repository that the pages name.

use crate::cargo::{root, run};
use anyhow::{Context, Result, ensure};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const REPOSITORY: &str = "https://github.com/docent-rs/docent";

/// A repository whose only commit is this checkout, with its uncommitted changes to tracked files.
#[derive(Debug)]
pub(super) struct Source {
    repository: PathBuf,
}

impl Source {
    /// Creates the repository in `folder`.
    pub(super) fn snapshot(folder: &Path) -> Result<Self> {
        let repository = empty(&folder.join("source"))?;
        let changed = git(&["stash", "create"])?;
        let tree = if changed.is_empty() { "HEAD^{tree}".to_owned() } else { format!("{changed}^{{tree}}") };
        let identity = ["-c", "user.name=reader", "-c", "user.email=reader@localhost"];
        let commit = git(&[&identity[..], &["commit-tree", &tree, "-m", "snapshot"]].concat())?;
        run(Command::new("git")
            .args(["init", "--quiet", "--bare", "--initial-branch=main"])
            .arg(&repository))?;
        git(&[
            "push",
            "--quiet",
            &format!("file://{}", repository.display()),
            &format!("{commit}:refs/heads/main"),
        ])?;
        Ok(Self { repository })
    }

    /// Returns the repository at a path of another system.
    pub(super) fn at(repository: PathBuf) -> Self {
        Self { repository }
    }

    /// Configuration that lets cargo find this repository under the address that the pages name.
    pub(super) fn git_config(&self) -> String {
        format!("[url \"file://{}\"]\n    insteadOf = {REPOSITORY}\n", self.repository.display())
    }

    /// Variables that let git and cargo find this repository under the address that the pages name.
    pub(super) fn variables(&self, cargo_home: &Path) -> Vec<(String, String)> {
        let mut variables = settings(cargo_home);
        let git = [
            ("CARGO_NET_GIT_FETCH_WITH_CLI", "true".to_owned()),
            ("GIT_CONFIG_COUNT", "1".to_owned()),
            ("GIT_CONFIG_KEY_0", format!("url.file://{}.insteadOf", self.repository.display())),
            ("GIT_CONFIG_VALUE_0", REPOSITORY.to_owned()),
        ];
        variables.extend(git.map(|(name, value)| (name.to_owned(), value)));
        variables
    }
}

/// Variables that change nothing but the time of the builds.
pub(super) fn settings(cargo_home: &Path) -> Vec<(String, String)> {
    let settings = [
        ("CARGO_HOME", cargo_home.display().to_string()),
        ("CARGO_INCREMENTAL", "0".to_owned()),
        ("CARGO_PROFILE_DEV_DEBUG", "0".to_owned()),
        ("CARGO_PROFILE_RELEASE_OPT_LEVEL", "0".to_owned()),
        ("CARGO_TERM_COLOR", "never".to_owned()),
    ];
    settings.map(|(name, value)| (name.to_owned(), value)).to_vec()
}

/// Creates an empty folder, without what an earlier run left there.
pub(super) fn empty(folder: &Path) -> Result<PathBuf> {
    if folder.exists() {
        fs::remove_dir_all(folder).with_context(|| format!("cannot remove {folder:?}"))?;
    }
    fs::create_dir_all(folder).with_context(|| format!("cannot create {folder:?}"))?;
    Ok(folder.to_owned())
}

fn git(arguments: &[&str]) -> Result<String> {
    let output =
        Command::new("git").args(arguments).current_dir(root()).output().context("cannot run git")?;
    ensure!(
        output.status.success(),
        "git {}: {}",
        arguments.join(" "),
        String::from_utf8_lossy(&output.stderr)
    );
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}
