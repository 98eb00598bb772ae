use super::published::{Package, Published};
use anyhow::{Result, ensure};

/// Checks that all published packages have one version, which they also require of each other, and that
/// their manifests are complete.
pub(super) fn check(published: &Published) -> Result<()> {
    let wrong: Vec<String> =
        published.packages.iter().flat_map(|package| wrong(published, package)).collect();
    ensure!(wrong.is_empty(), "{}", wrong.join("\n"));
    Ok(())
}

fn wrong(published: &Published, package: &Package) -> Vec<String> {
    let (name, version) = (&package.name, published.version());
    let missing = package.missing.iter().map(|field| format!("{name}: the manifest has no `{field}`"));
    let mut wrong: Vec<String> = missing.collect();
    if package.version != version {
        wrong
            .push(format!("{name}: the version is {}, and that of the others is {version}", package.version));
    }
    for dependency in package.dependencies.iter().filter(|dependency| dependency.versions != "*") {
        let (other, versions) = (&dependency.name, &dependency.versions);
        if !published.names().contains(&other.as_str()) {
            wrong.push(format!("{name}: depends on {other} {versions}, which is not published"));
        } else if *versions != format!("^{version}") {
            wrong.push(format!("{name}: depends on {other} {versions}, and its version is {version}"));
        }
    }
    wrong
}

#[cfg(test)]
mod tests {
    use super::super::published::Dependency;
    use super::*;

    fn published(dependency: &str, versions: &str) -> Published {
        let core = Package { name: "core".into(), version: "0.2.0".into(), ..Package::default() };
        let dependencies = vec![Dependency { name: dependency.into(), versions: versions.into() }];
        let cli = Package { name: "cli".into(), dependencies, ..core.clone() };
        Published { packages: vec![core, cli] }
    }

    #[test]
    fn a_dependency_on_an_unpublished_package_must_not_have_a_version() {
        assert!(check(&published("battery", "*")).is_ok());
        assert_eq!(
            check(&published("battery", "^0.2.0")).unwrap_err().to_string(),
            "cli: depends on battery ^0.2.0, which is not published"
        );
    }

    #[test]
    fn packages_require_their_own_version_of_each_other() {
        assert!(check(&published("core", "^0.2.0")).is_ok());
        assert_eq!(
            check(&published("core", "^0.1.0")).unwrap_err().to_string(),
            "cli: depends on core ^0.1.0, and its version is 0.2.0"
        );
    }

    #[test]
    fn all_versions_are_equal_and_no_field_is_missing() {
        let mut published = published("core", "^0.2.0");
        published.packages[1].version = "0.1.0".into();
        published.packages[1].missing = vec!["homepage"];
        assert_eq!(
            check(&published).unwrap_err().to_string(),
            "cli: the manifest has no `homepage`\ncli: the version is 0.1.0, and that of the others is 0.2.0"
        );
    }
}
