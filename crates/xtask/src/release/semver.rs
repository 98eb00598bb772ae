use super::published::Published;
use super::registry;
use crate::cargo::{cargo, run, succeeds};
use anyhow::{Result, ensure};

/// Checks that no package breaks semantic versioning compared with its last published version.
pub(super) fn check(published: &Published) -> Result<()> {
    let mut compared = Vec::new();
    for name in published.names() {
        match registry::newest(name)? {
            Some(version) => compared.push(format!("{name} with {version}")),
            None => println!("{name}: no version is published yet, so there is nothing to compare with"),
        }
    }
    // A command has no API.
    compared.retain(|what| !what.starts_with("docent-cli "));
    if compared.is_empty() {
        return Ok(());
    }
    println!("comparing {}", compared.join(", "));
    ensure!(
        succeeds(&mut cargo("semver-checks --version")),
        "cargo-semver-checks is missing: run `cargo install --locked cargo-semver-checks`"
    );
    let names = compared.iter().filter_map(|what| what.split(' ').next());
    let selected: Vec<String> = names.map(|name| format!("--package {name}")).collect();
    run(&mut cargo(&format!("semver-checks {}", selected.join(" "))))
}
