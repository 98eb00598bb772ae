use crate::cargo::{cargo, root};
use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Branches with which a change is compared. The first that exists is used.
const BASES: [&str; 4] = ["origin/HEAD", "origin/main", "main", "@{upstream}"];

/// Packages whose tests or documentation read files outside of their folders: the files or their folder, and
/// the packages.
const READERS: [(&str, &[&str]); 4] = [
    ("docs", &["docent", "docent-cli", "docent-tests"]),
    ("README.md", &["docent", "docent-tests"]),
    ("examples", &["docent-tests"]),
    // xtask reads the sources of all crates.
    ("crates", &["xtask"]),
];

/// A package of the workspace.
#[derive(Debug)]
struct Package {
    name: String,
    /// Path relative to the root of the workspace.
    folder: PathBuf,
    /// Folders of the packages that it depends on, including those of tests, relative to the root.
    needs: Vec<PathBuf>,
}

/// Returns the packages with files that differ from the merge base of the branch, and their dependents.
/// Returns `None` if a file that concerns the whole workspace differs.
///
/// # Errors
///
/// Fails if git or cargo cannot be run, or if there is no branch to compare with.
pub(super) fn packages() -> Result<Option<BTreeSet<String>>> {
    let files = files()?;
    Ok(affected(&workspace()?, &files))
}

/// Returns the files that differ, relative to the root.
fn files() -> Result<Vec<PathBuf>> {
    let base = |branch: &&'static str| git(&["merge-base", "HEAD", branch]).ok().map(|base| (*branch, base));
    let (branch, base) = BASES.iter().find_map(base).with_context(|| {
        format!("there is no branch to compare with: HEAD has no ancestor in common with any of {BASES:?}")
    })?;
    let base = base.trim();
    println!("changes since {base}, where the branch left {branch}");
    // The old name of a renamed file counts as a change.
    let changed = git(&["diff", "--no-renames", "--name-only", "-z", base])?;
    let new = git(&["ls-files", "--others", "--exclude-standard", "-z"])?;
    let files = changed.split('\0').chain(new.split('\0')).filter(|file| !file.is_empty());
    Ok(files.map(PathBuf::from).collect())
}

fn git(arguments: &[&str]) -> Result<String> {
    let output =
        Command::new("git").args(arguments).current_dir(root()).output().context("cannot run git")?;
    ensure!(output.status.success(), "git {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    Ok(String::from_utf8(output.stdout)?)
}

fn workspace() -> Result<Vec<Package>> {
    let output = cargo("metadata --format-version 1 --no-deps").output().context("cannot run cargo")?;
    ensure!(output.status.success(), "cargo metadata: {}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout)?;
    let packages = metadata["packages"].as_array().context("cargo names no packages")?;
    packages.iter().map(|package| Package::of(package, &root())).collect()
}

impl Package {
    fn of(package: &Value, root: &Path) -> Result<Self> {
        let Some((name, manifest)) = package["name"].as_str().zip(package["manifest_path"].as_str()) else {
            bail!("cargo describes a package in an unknown form: {package}");
        };
        let below = |path: &Path| path.strip_prefix(root).map(Path::to_owned);
        let needs = package["dependencies"].as_array().into_iter().flatten();
        let needs = needs.filter_map(|need| below(Path::new(need["path"].as_str()?)).ok()).collect();
        let folder = Path::new(manifest).parent().context("a manifest's path has a parent folder")?;
        Ok(Self { name: name.to_owned(), folder: below(folder)?, needs })
    }
}

fn affected(workspace: &[Package], files: &[PathBuf]) -> Option<BTreeSet<String>> {
    let mut changed = BTreeSet::new();
    for file in files {
        // The innermost package, because a package may be in the folder of another.
        let owner = workspace.iter().filter(|package| file.starts_with(&package.folder));
        match owner.max_by_key(|package| package.folder.components().count()) {
            Some(package) => changed.extend([package.name.clone()]),
            None if file.extension().is_some_and(|extension| extension == "md") => {}
            None => return None,
        }
    }
    loop {
        let is_changed = |folder: &PathBuf| {
            workspace.iter().any(|package| package.folder == *folder && changed.contains(&package.name))
        };
        let more = workspace.iter().filter(|package| package.needs.iter().any(is_changed));
        let more: BTreeSet<_> = more.map(|package| package.name.clone()).collect();
        if more.is_subset(&changed) {
            break;
        }
        changed.extend(more);
    }
    // No other package depends on the tests that read these files.
    let read = READERS.iter().filter(|(path, _)| files.iter().any(|file| file.starts_with(path)));
    changed.extend(read.flat_map(|(_, readers)| readers.iter().map(|reader| (*reader).to_owned())));
    Some(changed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn affected_by(files: &[&str]) -> Option<Vec<String>> {
        let package = |name: &str, folder: &str, needs: &[&str]| Package {
            name: name.to_owned(),
            folder: folder.into(),
            needs: needs.iter().map(PathBuf::from).collect(),
        };
        let workspace = [
            package("examples", "examples", &["crates/docent"]),
            package("core", "crates/core", &[]),
            package("locks", "crates/locks", &["crates/core"]),
            package("docent", "crates/docent", &["crates/locks"]),
            package("tests", "tests", &["crates/docent"]),
            package("simulation", "tests/simulation", &["crates/core"]),
        ];
        let files: Vec<_> = files.iter().map(PathBuf::from).collect();
        affected(&workspace, &files).map(|names| names.into_iter().collect())
    }

    #[test]
    fn packages_that_depend_on_a_changed_one_are_tested_too() {
        assert_eq!(
            affected_by(&["crates/locks/src/lib.rs"]).unwrap(),
            ["docent", "examples", "locks", "tests", "xtask"]
        );
        let all = ["core", "docent", "examples", "locks", "simulation", "tests", "xtask"];
        assert_eq!(affected_by(&["crates/core/src/lib.rs"]).unwrap(), all);
    }

    #[test]
    fn a_file_belongs_to_the_innermost_package() {
        assert_eq!(affected_by(&["tests/simulation/src/main.rs"]).unwrap(), ["simulation"]);
        assert_eq!(affected_by(&["tests/locks/main.rs", "CHANGELOG.md"]).unwrap(), ["tests"]);
    }

    #[test]
    fn packages_that_read_a_file_of_another_package_are_tested_too() {
        let readers = ["docent", "docent-cli", "docent-tests"];
        assert_eq!(affected_by(&["docs/guide/queue.md"]).unwrap(), readers);
        assert_eq!(affected_by(&["examples/counter/main.rs"]).unwrap(), ["docent-tests", "examples"]);
        assert_eq!(affected_by(&["CONTRIBUTING.md"]).unwrap(), [""; 0]);
    }

    #[test]
    fn a_file_of_the_whole_workspace_affects_all() {
        assert_eq!(affected_by(&["Cargo.lock"]), None);
    }
}
