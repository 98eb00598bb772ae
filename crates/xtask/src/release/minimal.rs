use super::packed::Packed;
use crate::cargo::{cargo, run};
use anyhow::{Context, Result};
use std::fs;
use std::process::Command;

/// Checks that the packages compile with the lowest version of each dependency that their manifests accept,
/// and with the oldest Rust.
pub(super) fn check(packed: &Packed) -> Result<()> {
    let folder = packed.empty("lowest")?;
    for (_, package) in &packed.folders {
        run(Command::new("cp").arg("-r").arg(package).arg(&folder))?;
        let manifest = folder.join(package.file_name().unwrap_or_default()).join("Cargo.toml");
        fs::write(&manifest, without_dev_dependencies(&fs::read_to_string(&manifest)?))?;
    }
    fs::write(folder.join("Cargo.toml"), packed.workspace())?;
    let mut lock = cargo("-Zdirect-minimal-versions generate-lockfile");
    // Cargo has the option on nightly only.
    run(lock.env("RUSTC_BOOTSTRAP", "1").current_dir(&folder))
        .context("another dependency needs more than a lower bound: raise the bound in Cargo.toml")?;
    run(packed.oldest.cargo("check --locked --workspace --all-features").current_dir(&folder))
}

/// Removes the tables of dependencies that only tests need. Cargo writes each dependency of a package as a
/// table of its own.
fn without_dev_dependencies(manifest: &str) -> String {
    let mut kept = String::new();
    let mut is_dev = false;
    for line in manifest.lines() {
        if line.starts_with('[') {
            is_dev = line.contains("dev-dependencies");
        }
        if !is_dev {
            kept.push_str(line);
            kept.push('\n');
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn development_dependencies_are_removed() {
        let manifest = "[dependencies.a]\nversion = \"1\"\n\n[dev-dependencies.b]\nversion = \"2\"\n\n[features]\nc = []\n";
        assert_eq!(
            without_dev_dependencies(manifest),
            "[dependencies.a]\nversion = \"1\"\n\n[features]\nc = []\n"
        );
    }
}
