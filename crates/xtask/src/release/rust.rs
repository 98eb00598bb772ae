//! What other toolchains than the current one must accept.

use super::published::Published;
use crate::cargo::{cargo, run};
use crate::toolchain::Toolchain;
use anyhow::{Context, Result, ensure};

/// Returns the toolchain of the version that the manifests state, and installs it if it is missing.
pub(super) fn oldest(published: &Published) -> Result<Toolchain> {
    let first = published.packages.first().context("no package is published")?;
    let version = &first.rust_version;
    ensure!(!version.is_empty(), "{} states no `rust-version`", first.name);
    for package in &published.packages {
        let (name, other) = (&package.name, &package.rust_version);
        ensure!(other == version, "{name} states Rust {other:?}, and {} {version}", first.name);
    }
    Toolchain::ensure(&full(version))
}

/// Returns a version with all three numbers. Rustup reads `1.88` as its newest patch.
fn full(version: &str) -> String {
    if version.split('.').count() == 2 { format!("{version}.0") } else { version.to_owned() }
}

/// Checks that all published packages compile with the stated version.
pub(super) fn check_oldest(published: &Published) -> Result<()> {
    let check = format!("check --locked --all-features {}", published.selected());
    run(&mut oldest(published)?.cargo(&check))
}

/// Builds the documentation as docs.rs does, which uses nightly. A stable toolchain stands in for it.
pub(super) fn docs(published: &Published) -> Result<()> {
    let doc = format!("doc --no-deps --all-features {}", published.selected());
    let mut doc = match Toolchain::installed("nightly") {
        Some(nightly) => nightly.cargo(&doc),
        None => {
            println!("nightly is not installed; using this toolchain with unstable features");
            let mut doc = cargo(&doc);
            doc.env("RUSTC_BOOTSTRAP", "1");
            doc
        }
    };
    run(doc.env("RUSTDOCFLAGS", "--cfg docsrs -D warnings"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_toolchain_is_named_with_three_numbers() {
        assert_eq!(full("1.88"), "1.88.0");
        assert_eq!(full("1.88.1"), "1.88.1");
    }
}
