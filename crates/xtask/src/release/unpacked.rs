use super::packed::Packed;
use super::published::Published;
use crate::cargo::{cargo, run};
use anyhow::{Result, ensure};
use std::fs;

/// Runs the tests that each package contains where `tar` has put it: with its default features and with all.
/// All packages share a build folder, which is kept.
pub(super) fn test(published: &Published) -> Result<()> {
    let packed = Packed::of(published)?;
    let folder = packed.scratch.join("packages");
    fs::write(folder.join("Cargo.toml"), packed.workspace())?;
    let mut failed = Vec::new();
    for package in &published.packages {
        let all: &[&str] = if package.features.is_empty() { &[] } else { &["--all-features"] };
        for features in [&[""], all].concat() {
            let what = format!("{} {features}", package.name);
            println!("-- {what}");
            let mut test = cargo(&format!("test --quiet --no-fail-fast --package {what}"));
            test.current_dir(&folder).env("CARGO_TARGET_DIR", packed.scratch.join("tests"));
            if run(&mut test).is_err() {
                failed.push(what);
            }
        }
    }
    ensure!(failed.is_empty(), "the tests of these packages fail: {}", failed.join("; "));
    Ok(())
}
