use super::published::Published;
use super::rust;
use crate::cargo::{cargo, run, target};
use crate::toolchain::Toolchain;
use anyhow::{Context, Result, ensure};
use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Files that each package contains.
const CONTENTS: [&str; 4] = ["Cargo.toml", "LICENSE-APACHE", "LICENSE-MIT", "README.md"];

/// The unpacked packages, as users get them.
#[derive(Debug)]
pub(super) struct Packed {
    /// Folder outside of the workspace's packages, for everything that is built from the packages.
    pub(super) scratch: PathBuf,
    /// Names of the packages and their folders.
    pub(super) folders: Vec<(String, PathBuf)>,
    /// The oldest toolchain that users may have.
    pub(super) oldest: Toolchain,
}

impl Packed {
    /// Returns the packages that [`pack`] has unpacked.
    pub(super) fn of(published: &Published) -> Result<Self> {
        let scratch = scratch();
        let mut folders = Vec::new();
        for package in &published.packages {
            let folder = scratch.join("packages").join(format!("{}-{}", package.name, package.version));
            ensure!(folder.is_dir(), "{} is missing: run the stage \"packages\" first", folder.display());
            folders.push((package.name.clone(), folder));
        }
        Ok(Self { scratch, folders, oldest: rust::oldest(published)? })
    }

    /// Returns an empty folder below the scratch folder.
    pub(super) fn empty(&self, name: &str) -> Result<PathBuf> {
        let folder = self.scratch.join(name);
        if folder.exists() {
            fs::remove_dir_all(&folder)?;
        }
        fs::create_dir_all(&folder)?;
        Ok(folder)
    }

    /// Returns the lines of a manifest that replace the packages of crates.io by the unpacked ones.
    pub(super) fn patches(&self) -> String {
        let patch = |(name, folder): &(String, PathBuf)| format!("{name} = {{ path = {folder:?} }}\n");
        let patches: String = self.folders.iter().map(patch).collect();
        format!("[patch.crates-io]\n{patches}")
    }

    /// Returns the manifest of a workspace of all packages, in which they replace the packages of crates.io.
    /// It belongs into a folder that contains them under their names in [`folders`](Self::folders).
    pub(super) fn workspace(&self) -> String {
        let member = |(_, folder): &(String, PathBuf)| folder.file_name().map(OsStr::to_os_string);
        let members: Vec<OsString> = self.folders.iter().filter_map(member).collect();
        let patch = |((name, _), member): (&(String, PathBuf), &OsString)| {
            format!("{name} = {{ path = {member:?} }}\n")
        };
        let patches: String = self.folders.iter().zip(&members).map(patch).collect();
        format!("[workspace]\nresolver = \"3\"\nmembers = {members:?}\n\n[patch.crates-io]\n{patches}")
    }

    pub(super) fn folder(&self, name: &str) -> Result<&Path> {
        let found = self.folders.iter().find(|(other, _)| other == name);
        Ok(found.with_context(|| format!("{name} is not published"))?.1.as_path())
    }
}

/// Creates all packages and unpacks them.
pub(super) fn pack(published: &Published) -> Result<()> {
    run(&mut cargo(&format!("package --quiet --no-verify {}", published.selected())))?;
    let unpacked = scratch().join("packages");
    // The packages of an earlier run.
    let _ = fs::remove_dir_all(&unpacked);
    fs::create_dir_all(&unpacked)?;
    for package in &published.packages {
        let name = format!("{}-{}", package.name, package.version);
        let archive = target().join("package").join(format!("{name}.crate"));
        // With the time of now, so that cargo builds changed files. All files of an archive have one old
        // time.
        run(Command::new("tar").arg("-xmf").arg(&archive).arg("-C").arg(&unpacked))?;
        check_licences(&unpacked.join(name))?;
    }
    Ok(())
}

fn scratch() -> PathBuf {
    target().join("release-check")
}

/// Checks that an unpacked package contains the texts of the licences and not links to them.
fn check_licences(folder: &Path) -> Result<()> {
    for (name, phrase) in
        [("LICENSE-APACHE", "Apache License"), ("LICENSE-MIT", "Permission is hereby granted")]
    {
        let path = folder.join(name);
        let text = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        ensure!(text.contains(phrase), "{} is not a licence", path.display());
    }
    Ok(())
}

/// Checks the list of the files of a package.
pub(super) fn check_contents(name: &str, listed: &str) -> Result<()> {
    for wanted in CONTENTS {
        ensure!(listed.lines().any(|line| line == wanted), "the package {name} does not contain {wanted}");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_package_contains_both_licences() {
        let listed = "Cargo.toml\nLICENSE-APACHE\nLICENSE-MIT\nREADME.md\nsrc/lib.rs\n";
        assert!(check_contents("a", listed).is_ok());
        let error = check_contents("a", &listed.replace("LICENSE-MIT\n", "")).unwrap_err();
        assert_eq!(error.to_string(), "the package a does not contain LICENSE-MIT");
    }
}
