use crate::cargo::cargo;
use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

/// A package of this workspace that crates.io gets.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Package {
    pub(super) name: String,
    pub(super) version: String,
    pub(super) rust_version: String,
    /// Fields of the manifest which are missing and should be there.
    pub(super) missing: Vec<&'static str>,
    pub(super) features: Vec<String>,
    pub(super) dependencies: Vec<Dependency>,
}

/// A dependency on another package of this workspace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Dependency {
    pub(super) name: String,
    /// The versions that are accepted, or `*` if the manifest states none. Cargo removes a development
    /// dependency without a version from the package.
    pub(super) versions: String,
}

/// All published packages, each after those that it depends on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Published {
    pub(super) packages: Vec<Package>,
}

impl Published {
    /// Reads the manifests of the workspace.
    pub(super) fn read() -> Result<Self> {
        let metadata = cargo("metadata --no-deps --format-version 1").output()?;
        ensure!(metadata.status.success(), "{}", String::from_utf8_lossy(&metadata.stderr));
        let metadata: Value = serde_json::from_slice(&metadata.stdout)?;
        let all = metadata["packages"].as_array().context("cargo metadata lists no packages")?;
        // A package with `publish = false` has an empty list of registries.
        let packages = all.iter().filter(|package| package["publish"].is_null()).map(package).collect();
        Ok(Self { packages: in_order(packages)? })
    }

    /// Returns the version of the first package. [`manifests`](super::manifests()) checks that all are equal.
    pub(super) fn version(&self) -> String {
        self.packages.first().map(|package| package.version.clone()).unwrap_or_default()
    }

    pub(super) fn names(&self) -> Vec<&str> {
        self.packages.iter().map(|package| package.name.as_str()).collect()
    }

    /// Returns the arguments that select all published packages.
    pub(super) fn selected(&self) -> String {
        let selected: Vec<String> = self.names().iter().map(|name| format!("--package {name}")).collect();
        selected.join(" ")
    }
}

fn package(package: &Value) -> Package {
    const WANTED: [&str; 8] = [
        "categories",
        "description",
        "documentation",
        "homepage",
        "keywords",
        "license",
        "readme",
        "repository",
    ];
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let is_missing = |field: &&str| match &package[*field] {
        Value::Array(values) => values.is_empty(),
        value => value.is_null(),
    };
    let features = package["features"].as_object();
    let dependencies = package["dependencies"].as_array().into_iter().flatten();
    let siblings = dependencies.filter(|dependency| !dependency["path"].is_null());
    Package {
        name: text(&package["name"]),
        version: text(&package["version"]),
        rust_version: text(&package["rust_version"]),
        missing: WANTED.into_iter().filter(is_missing).collect(),
        features: features.into_iter().flat_map(|features| features.keys().cloned()).collect(),
        dependencies: siblings
            .map(|dependency| Dependency {
                name: text(&dependency["name"]),
                versions: text(&dependency["req"]),
            })
            .collect(),
    }
}

/// Sorts packages so that each is behind those that it depends on. Packages that do not depend on each other
/// are in order of their names.
fn in_order(mut packages: Vec<Package>) -> Result<Vec<Package>> {
    packages.sort_by(|one, other| one.name.cmp(&other.name));
    let mut sorted = Vec::new();
    while !packages.is_empty() {
        let waits = |package: &Package| {
            let kept = package.dependencies.iter().filter(|dependency| dependency.versions != "*");
            let mut kept = kept.map(|dependency| &dependency.name);
            kept.any(|name| packages.iter().any(|other| other.name == *name))
        };
        let Some(next) = packages.iter().position(|package| !waits(package)) else {
            let names: Vec<&str> = packages.iter().map(|package| package.name.as_str()).collect();
            bail!("these packages depend on each other: {}", names.join(", "));
        };
        sorted.push(packages.remove(next));
    }
    Ok(sorted)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(name: &str, dependencies: &[(&str, &str)]) -> Package {
        let dependency = |(name, versions): &(&str, &str)| Dependency {
            name: (*name).to_owned(),
            versions: (*versions).to_owned(),
        };
        let dependencies = dependencies.iter().map(dependency).collect();
        Package { name: name.into(), dependencies, ..Package::default() }
    }

    fn order(packages: Vec<Package>) -> Result<Vec<String>> {
        Ok(in_order(packages)?.into_iter().map(|package| package.name).collect())
    }

    #[test]
    fn a_package_comes_after_those_that_it_depends_on() {
        let packages = vec![named("a", &[("c", "^0.1.0")]), named("b", &[]), named("c", &[("b", "^0.1.0")])];
        assert_eq!(order(packages).unwrap(), ["b", "c", "a"]);
    }

    #[test]
    fn a_development_dependency_without_a_version_does_not_count() {
        let packages = vec![named("a", &[("b", "*")]), named("b", &[("a", "^0.1.0")])];
        assert_eq!(order(packages).unwrap(), ["a", "b"]);
    }

    #[test]
    fn a_cycle_is_refused() {
        let packages = vec![named("a", &[("b", "^0.1.0")]), named("b", &[("a", "^0.1.0")])];
        assert_eq!(order(packages).unwrap_err().to_string(), "these packages depend on each other: a, b");
    }

    #[test]
    fn the_facade_is_published_after_the_recipes() {
        let published = Published::read().unwrap();
        let names = published.names();
        let place = |wanted: &str| names.iter().position(|name| *name == wanted).unwrap();
        assert!(place("docent-proto") < place("docent-core"));
        assert!(place("docent-locks") < place("docent"));
        assert!(place("docent") < place("docent-cli"));
        assert!(!names.contains(&"xtask") && !names.contains(&"docent-battery"));
    }
}
