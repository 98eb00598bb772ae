//! The order of folders and crates: a `use` goes down, and a `mod.rs` is a table of contents.

use anyhow::{Context, Result, bail};
use std::fs;
use std::path::{Path, PathBuf};

/// The folders of `docent-core`, from the top. Those of one line may use each other.
const ROOMS: [&[&str]; 8] = [
    &["cache"],
    &["claim"],
    &["line", "versioned"],
    &["watch"],
    // A session with all that is tied to it knows its guards, and these their session.
    &["client", "kept", "guard", "cleanup", "operation"],
    &["session"],
    &["node"],
    &["time", "task"],
];

/// Files of `docent-core` that belong to no folder: every folder uses them.
const LOOSE: [&str; 5] = ["error", "lib", "macros", "planted", "telemetry"];

/// The crates, from the top. Those of one line do not know each other.
const CRATES: [&[&str]; 6] = [
    &["docent-bench"],
    &["docent"],
    &["docent-locks", "docent-election", "docent-queue", "docent-discovery", "docent-config"],
    &["docent-core", "docent-codec", "docent-testkit", "docent-checker"],
    &["docent-server"],
    &["docent-proto"],
];

/// Fails where something runs up, or where logic is in a table of contents.
pub(crate) fn check() -> Result<()> {
    let crates = crate::cargo::root().join("crates");
    let mut wrong = loose(&crates.join("docent-core/src"))?;
    for file in sources(&crates)? {
        let text = fs::read_to_string(&file).with_context(|| file.display().to_string())?;
        let name = file.strip_prefix(&crates).unwrap_or(&file).to_owned();
        if let Ok(inside) = name.strip_prefix("docent-core/src") {
            wrong.extend(climbs(inside, &text).into_iter().map(|what| format!("{}:{what}", name.display())));
        }
        if name.ends_with("mod.rs") {
            wrong.extend(logic(&text).map(|line| {
                format!("{}:{line}: a mod.rs is a table of contents, and this is more", name.display())
            }));
        }
    }
    for manifest in fs::read_dir(&crates)? {
        let folder = manifest?.path();
        let Some(name) = folder.file_name().and_then(|name| name.to_str()) else { continue };
        let Ok(manifest) = fs::read_to_string(folder.join("Cargo.toml")) else { continue };
        wrong.extend(depends_up(name, &manifest));
    }
    if wrong.is_empty() {
        return Ok(());
    }
    bail!("{}", wrong.join("\n"))
}

/// All files with Rust in them below the `src` of each crate, without folders of tests.
fn sources(crates: &Path) -> Result<Vec<PathBuf>> {
    let (mut found, mut folders) = (Vec::new(), Vec::new());
    for package in fs::read_dir(crates)? {
        folders.push(package?.path().join("src"));
    }
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).with_context(|| folder.display().to_string())? {
            let path = entry?.path();
            if path.is_dir() && !path.ends_with("tests") {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                found.push(path);
            }
        }
    }
    found.sort();
    Ok(found)
}

/// Files at the root of `src` that have no business there.
fn loose(src: &Path) -> Result<Vec<String>> {
    let mut wrong = Vec::new();
    for entry in fs::read_dir(src)? {
        let path = entry?.path();
        let Some(name) = path.file_stem().and_then(|name| name.to_str()) else { continue };
        if path.is_file() && !LOOSE.contains(&name) {
            wrong.push(format!("docent-core/src/{name}.rs: a file belongs into a folder"));
        }
        if path.is_dir() && floor(name).is_none() {
            wrong.push(format!("docent-core/src/{name}: a folder that the order of folders does not know"));
        }
    }
    Ok(wrong)
}

fn floor(room: &str) -> Option<usize> {
    ROOMS.iter().position(|rooms| rooms.contains(&room))
}

/// Lines of a file of `docent-core` that name something above it.
fn climbs(file: &Path, text: &str) -> Vec<String> {
    let room = file.components().next().and_then(|room| room.as_os_str().to_str()).unwrap_or_default();
    let Some(own) = floor(room) else { return Vec::new() };
    let is_test =
        file.components().any(|part| part.as_os_str().to_str().is_some_and(|part| part.starts_with("tests")));
    if is_test {
        return Vec::new();
    }
    let mut wrong = Vec::new();
    for (number, line) in code(text) {
        for named in line.split("crate::").skip(1) {
            let named: String = named.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
            if floor(&named).is_some_and(|other| other < own) {
                wrong.push(format!("{number}: {room} uses {named}, which is above it"));
            }
        }
    }
    wrong
}

/// The numbered lines of a file before its tests, without comments.
fn code(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let end = text.find("#[cfg(test)]\nmod tests {").unwrap_or(text.len());
    let numbered = text[..end].lines().enumerate().map(|(index, line)| (index + 1, line));
    numbered.filter(|(_, line)| !line.trim_start().starts_with("//"))
}

/// The first line of a `mod.rs` that defines something.
fn logic(text: &str) -> Option<usize> {
    const DEFINES: [&str; 9] =
        ["fn ", "async fn ", "impl", "struct ", "enum ", "trait ", "type ", "static ", "const "];
    let defines = |line: &str| {
        let rest = line.strip_prefix("pub").map_or(line, |rest| match rest.strip_prefix('(') {
            Some(scope) => scope.split_once(") ").map_or(rest, |(_, rest)| rest),
            None => rest.trim_start(),
        });
        DEFINES.iter().any(|word| rest.starts_with(word))
    };
    code(text).find(|(_, line)| defines(line)).map(|(number, _)| number)
}

/// Dependencies of a crate on one that is not below it.
fn depends_up(name: &str, manifest: &str) -> Vec<String> {
    let floor = |name: &str| CRATES.iter().position(|crates| crates.contains(&name));
    let Some(own) = floor(name) else { return Vec::new() };
    let section = manifest.split("\n[dependencies]\n").nth(1).unwrap_or_default();
    let section = section.split("\n[").next().unwrap_or_default();
    let names = section.lines().filter_map(|line| line.split(['.', ' ', '=']).next());
    let up = names.filter(|other| floor(other).is_some_and(|other| other <= own));
    up.map(|other| format!("{name} depends on {other}, which is not below it")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_above_may_not_be_used() {
        let climbs = |file: &str, text: &str| climbs(Path::new(file), text);
        assert_eq!(
            climbs("session/lease.rs", "use crate::client::Client;"),
            ["1: session uses client, which is above it"]
        );
        assert_eq!(
            climbs("client/client.rs", "use crate::session::Session;\nuse crate::error::Error;"),
            [""; 0]
        );
        assert_eq!(climbs("guard/held.rs", "use crate::cleanup::Leaving;"), [""; 0]);
        assert_eq!(climbs("time/clock.rs", "// crate::client\nfn f() { crate::node::f() }").len(), 1);
        assert_eq!(
            climbs("time/clock.rs", "#[cfg(test)]\nmod tests {\n    use crate::client::Client;"),
            [""; 0]
        );
    }

    #[test]
    fn a_table_of_contents_defines_nothing() {
        assert_eq!(logic("//! Nodes.\n\nmod acl;\npub use acl::Acl;\npub(crate) mod path;\n"), None);
        assert_eq!(logic("mod acl;\n\npub(in crate::session) struct Machine {"), Some(3));
        assert_eq!(logic("mod a;\npub async fn f() {}"), Some(2));
        assert_eq!(logic("impl Machine {"), Some(1));
    }

    #[test]
    fn crates_depend_on_those_below() {
        let manifest = "[package]\nname = \"x\"\n\n[dependencies]\nserde.workspace = true\ndocent-queue.workspace = true\n\n[dev-dependencies]\n";
        assert_eq!(
            depends_up("docent-locks", manifest),
            ["docent-locks depends on docent-queue, which is not below it"]
        );
        assert_eq!(depends_up("docent-core", manifest).len(), 1);
        assert_eq!(depends_up("docent", manifest), [""; 0]);
    }
}
