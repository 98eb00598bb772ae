//! The tables of public types, futures and errors, as complete as the public API.

use crate::cargo::root;
use crate::sources::{code, rust_files};
use anyhow::{Context, Result, ensure};
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// Folder of the table.
const TABLE: &str = "crates/docent/tests/auto_traits";

/// The crates that the facade shows.
const SHOWN: [&str; 10] =
    ["core", "codec", "locks", "election", "queue", "discovery", "config", "inspect", "server", "testkit"];

/// Files besides a crate's root that export names.
const MODULES: [&str; 1] = ["crates/docent-core/src/session/zookeeper_client/mod.rs"];

/// Tables of errors: of those of operations, and of those of the test kit, which nobody retries.
const ERRORS: [&str; 2] = ["tests/core/errors.rs", "tests/testkit/texts.rs"];

/// The crates whose errors have rows.
const FAILING: [&str; 8] = ["core", "locks", "election", "queue", "discovery", "config", "server", "testkit"];

/// Errors about a text or a value. No operation returns them.
const VALUES: [&str; 2] = ["CodecError", "ParseFenceError"];

/// The crates whose futures have rows.
const FUTURES: [&str; 6] = ["locks", "election", "queue", "discovery", "config", "inspect"];

/// Fails where a public type, a future of a recipe or an error has no row in its table.
pub(crate) fn check() -> Result<()> {
    let root = root();
    let table = read(&root, &rust_files(&root, TABLE)?)?;
    let mut exporting: Vec<String> = SHOWN.iter().map(|name| format!("{}/lib.rs", source(name))).collect();
    exporting.extend(MODULES.map(str::to_owned));
    let shown = sources(&root, &SHOWN)?;
    let kinds = others(&shown);
    let mut missing: Vec<String> = exported(&read(&root, &exporting)?)
        .into_iter()
        .filter(|name| !kinds.contains(name) && !has_word(&table, name))
        .map(|name| format!("type {name}"))
        .collect();
    let futures = futures(&sources(&root, &FUTURES)?);
    let absent = futures.into_iter().filter(|name| !is_called(&table, name));
    missing.extend(absent.map(|name| format!("future {name}")));
    ensure!(missing.is_empty(), "{TABLE} has no row for: {}", missing.join(", "));
    errors(&root)
}

/// Fails where an error has no row in the table of errors (decision 13).
fn errors(root: &Path) -> Result<()> {
    let table = read(root, &ERRORS.map(str::to_owned))?;
    let exporting: Vec<String> = FAILING.iter().map(|name| format!("{}/lib.rs", source(name))).collect();
    let mut errors = exported(&read(root, &exporting)?);
    errors.retain(|name| (name.ends_with("Error") || name == "Lost") && !VALUES.contains(&name.as_str()));
    errors.retain(|name| !has_word(&table, name));
    ensure!(errors.is_empty(), "{} has no row for: {errors:?}", ERRORS.join(" or "));
    Ok(())
}

fn source(name: &str) -> String {
    format!("crates/docent-{name}/src")
}

fn sources(root: &Path, names: &[&str]) -> Result<String> {
    let mut files = Vec::new();
    for name in names {
        files.extend(rust_files(root, &source(name))?);
    }
    read(root, &files)
}

/// The code of files, one after the other, without comments and tests.
fn read(root: &Path, files: &[String]) -> Result<String> {
    let mut all = String::new();
    for file in files {
        let text = fs::read_to_string(root.join(file)).with_context(|| file.clone())?;
        for (_, line) in code(&text) {
            all.push_str(line);
            all.push('\n');
        }
    }
    Ok(all)
}

/// Names that begin with a capital letter in the `pub use` of a text.
fn exported(text: &str) -> BTreeSet<String> {
    let uses = text.split("pub use ").skip(1).filter_map(|rest| rest.split(';').next());
    uses.flat_map(words).filter(|name| name.starts_with(char::is_uppercase)).map(str::to_owned).collect()
}

/// Traits and names for types, which are no types.
fn others(text: &str) -> BTreeSet<String> {
    let after = |keyword| text.split(keyword).skip(1).filter_map(|rest| words(rest).next());
    after("pub trait ").chain(after("pub type ")).map(str::to_owned).collect()
}

/// Public methods that return futures.
fn futures(text: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for rest in text.split("    pub async fn ").skip(1) {
        found.extend(words(rest).next().map(str::to_owned));
    }
    for rest in text.split("    pub fn ").skip(1) {
        let signature = rest.split(" {\n").next().unwrap_or_default();
        let result = signature.split(") ->").nth(1).unwrap_or_default();
        if result.contains("impl Future") {
            found.extend(words(rest).next().map(str::to_owned));
        }
    }
    found
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| !word.is_empty())
}

fn has_word(text: &str, name: &str) -> bool {
    words(text).any(|word| word == name)
}

fn is_called(text: &str, name: &str) -> bool {
    let mut places = text.match_indices(name).map(|(at, _)| (at, at + name.len()));
    places.any(|(from, to)| {
        (text[..from].ends_with('.') || text[..from].ends_with("::")) && text[to..].starts_with(['(', ':'])
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_public_type_and_future_has_a_row() {
        check().unwrap();
    }

    #[test]
    fn exports_are_found_and_traits_are_told_from_types() {
        let text = "pub use a::{One, Two, three};\npub use b::Four;\nuse c::Five;\n";
        assert_eq!(exported(text).into_iter().collect::<Vec<_>>(), ["Four", "One", "Two"]);
        assert!(others("pub trait One: Send {\npub type Two<T> = Vec<T>;\n").contains("Two"));
        assert!(others("pub trait One: Send {\n").contains("One"));
    }

    #[test]
    fn futures_are_found_also_behind_long_signatures() {
        let text = "    pub async fn one(&self) {\n    pub fn two(\n        &self,\n    ) -> impl Future<Output = ()> {\n\
                    \x20   pub fn three(f: impl Future) -> u32 {\n    async fn four() {\n";
        assert_eq!(futures(text).into_iter().collect::<Vec<_>>(), ["one", "two"]);
    }

    #[test]
    fn a_row_of_a_future_calls_it() {
        assert!(is_called("free(a.read());", "read"));
        assert!(is_called("free(a.service::<u32>());", "service"));
        assert!(!is_called("free(a.read_as());", "read"));
        assert!(!is_called("fn read() {}", "read"));
    }
}
