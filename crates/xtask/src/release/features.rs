use super::published::{Package, Published};
use crate::cargo::{cargo, run};
use anyhow::{Result, ensure};

/// Checks that each published package compiles without warnings without features, with each feature alone,
/// and with all features.
pub(super) fn check(published: &Published) -> Result<()> {
    let mut failed = Vec::new();
    for package in &published.packages {
        for features in combinations(package) {
            let what = format!("{} {features}", package.name);
            println!("-- {what}");
            let clippy = format!("clippy --quiet --no-deps --package {what} -- -D warnings");
            if run(&mut cargo(&clippy)).is_err() {
                failed.push(what);
            }
        }
    }
    ensure!(failed.is_empty(), "these do not compile without warnings: {}", failed.join("; "));
    Ok(())
}

/// Returns the arguments that select features. `default` is not among them, because it only names others.
fn combinations(package: &Package) -> Vec<String> {
    let features: Vec<&String> = package.features.iter().filter(|feature| *feature != "default").collect();
    let mut combinations = vec!["--no-default-features".to_owned()];
    if features.len() > 1 {
        let each = features.iter().map(|feature| format!("--no-default-features --features {feature}"));
        combinations.extend(each);
    }
    if !features.is_empty() {
        combinations.push("--all-features".to_owned());
    }
    combinations
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn features_are_checked_alone_and_together() {
        let with = |features: &[&str]| {
            let features = features.iter().map(|feature| (*feature).to_owned()).collect();
            combinations(&Package { features, ..Package::default() })
        };
        assert_eq!(with(&[]), ["--no-default-features"]);
        assert_eq!(with(&["cli", "default"]), ["--no-default-features", "--all-features"]);
        assert_eq!(
            with(&["a", "b"]),
            [
                "--no-default-features",
                "--no-default-features --features a",
                "--no-default-features --features b",
                "--all-features"
            ]
        );
    }
}
