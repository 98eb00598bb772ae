/// The facade's source file.
pub(super) const FACADE: &str = "crates/docent/src/lib.rs";

/// Modules of other crates that are exported at the root.
const MODULES: [&str; 2] = ["planted", "zookeeper_client"];

/// Exports of the facade, in order.
#[derive(Debug, Default)]
pub(super) struct Facade {
    modules: Vec<Module>,
    names: Vec<Name>,
    /// Lines that are neither a module nor an export.
    others: Vec<usize>,
}

#[derive(Debug)]
struct Module {
    name: String,
    /// First paragraph of its documentation.
    about: String,
    feature: Option<String>,
}

/// A name at the root.
#[derive(Debug)]
struct Name {
    /// The module that contains the name as well.
    module: String,
    name: String,
    feature: Option<String>,
}

impl Facade {
    /// Returns the exports of a facade with this source text.
    pub(super) fn parse(text: &str) -> Self {
        let mut facade = Self::default();
        let (mut about, mut feature) = (Vec::new(), None);
        let mut lines = text.lines().enumerate();
        while let Some((index, line)) = lines.next() {
            if let Some(doc) = line.strip_prefix("///") {
                about.push(doc.trim());
            } else if let Some(condition) = line.strip_prefix("#[cfg(feature = \"") {
                feature = condition.split('"').next().map(str::to_owned);
            } else if let Some(path) = line.strip_prefix("pub use ") {
                let mut path = path.to_owned();
                while !path.ends_with(';') {
                    let Some((_, more)) = lines.next() else { break };
                    path.push_str(more);
                }
                facade.names.extend(names(path.trim_end_matches(';'), feature.as_deref()));
            } else if let Some(module) = line.strip_prefix("pub mod ") {
                let name = module.trim_end_matches([' ', '{', '}', ';']).to_owned();
                let about = about.split(|line| line.is_empty()).next().unwrap_or_default().join(" ");
                facade.modules.push(Module { name, about, feature: feature.take() });
            } else if line.starts_with("pub ") || line.starts_with("macro_rules!") {
                facade.others.push(index + 1);
            }
            if !line.starts_with("///") && !line.starts_with("#[") {
                (about, feature) = (Vec::new(), None);
            }
        }
        facade
    }

    /// Returns violations of the facade's rules.
    pub(super) fn check(&self) -> Vec<String> {
        let mut wrong = Vec::new();
        for Name { module, name, .. } in &self.names {
            if name == "*" {
                wrong.push(format!(
                    "{FACADE}: all of {module} is exported at the root; export single names instead"
                ));
            } else if !self.modules.iter().any(|one| one.name == *module) {
                wrong.push(format!("{FACADE}: {name} is exported at the root, but in no module"));
            }
        }
        let silent = self.modules.iter().filter(|module| module.about.is_empty());
        wrong.extend(silent.map(|Module { name, .. }| format!("{FACADE}: {name} has no documentation")));
        wrong.extend(
            self.others
                .iter()
                .map(|line| format!("{FACADE}:{line}: a facade contains only modules and exports")),
        );
        wrong
    }

    /// The section of rustdoc's page that lists the modules.
    pub(super) fn table(&self) -> String {
        let mut table = String::from(TABLE);
        for module in &self.modules {
            let names = self.names.iter().filter(|name| name.module == module.name);
            let names: Vec<String> = names.map(Name::linked).collect();
            table.push_str(&format!("| {} | {} | {} |\n", module.linked(), module.about, names.join(", ")));
        }
        table
    }
}

const TABLE: &str = "## Modules

The names that most programs need are at the root. They are also in modules, together with all other names. Each module links to its guide:

| module | contains | at the root |
|---|---|---|
";

impl Module {
    /// The module's link on rustdoc's page. If the module needs a feature, it may be missing there.
    fn linked(&self) -> String {
        let name = &self.name;
        match &self.feature {
            None => format!("[`{name}`]"),
            Some(feature) => format!("[`{name}`]({name}/index.html) (feature `{feature}`)"),
        }
    }
}

impl Name {
    /// The name as in [`Module::linked`].
    fn linked(&self) -> String {
        match &self.feature {
            None => format!("[`{}`]", self.name),
            Some(feature) => format!("`{}` (feature `{feature}`)", self.name),
        }
    }
}

/// Returns the names that `pub use` of this path exports, without modules of other crates.
fn names(path: &str, feature: Option<&str>) -> Vec<Name> {
    let (module, names) = path.rsplit_once("::").unwrap_or(("", path));
    let (module, names) = path.split_once("::{").unwrap_or((module, names));
    let names = names.trim_end_matches('}').split(',').map(str::trim).filter(|name| !name.is_empty());
    let names = names.filter(|name| !MODULES.contains(name));
    let feature = feature.map(str::to_owned);
    names.map(|name| Name { module: module.into(), name: name.into(), feature: feature.clone() }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cargo::root;
    use std::fs;

    const SMALL: &str = r#"#![doc = include_str!("front.md")]

#[doc(no_inline)]
pub use a::{
    One, Two,
};
#[cfg(feature = "x")]
#[doc(no_inline)]
pub use b::Three;
pub use docent_core::zookeeper_client;

/// Things,
/// and more.
///
/// Guide: [a](crate::guide::a).
pub mod a {
    pub use docent_a::*;
}

/// Others.
#[cfg(feature = "x")]
pub mod b {}
"#;

    fn wrong(text: &str) -> Vec<String> {
        Facade::parse(text).check()
    }

    #[test]
    fn the_facade_is_a_table_of_contents() {
        let facade = Facade::parse(&fs::read_to_string(root().join(FACADE)).unwrap());
        assert_eq!(facade.check(), [""; 0]);
        assert!(facade.names.iter().any(|name| name.name == "Client"));
    }

    #[test]
    fn a_name_is_in_a_module_and_a_module_has_documentation() {
        assert_eq!(wrong(SMALL), [""; 0]);
        assert_eq!(wrong("pub use docent_core::Client;\n").len(), 1);
        assert_eq!(wrong("pub use a::*;\n/// Things.\npub mod a {}\n").len(), 1);
        assert_eq!(wrong("pub mod a {}\n").len(), 1);
        assert_eq!(wrong("pub fn f() {}\n").len(), 1);
    }

    #[test]
    fn the_table_has_what_is_in_the_file() {
        let table = Facade::parse(SMALL).table();
        let rows: Vec<&str> = table.lines().skip_while(|line| !line.starts_with("|---")).skip(1).collect();
        let expected = [
            "| [`a`] | Things, and more. | [`One`], [`Two`] |",
            "| [`b`](b/index.html) (feature `x`) | Others. | `Three` (feature `x`) |",
        ];
        assert_eq!(rows, expected);
    }
}
