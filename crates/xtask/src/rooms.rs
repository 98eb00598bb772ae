//! The order of folders and crates: a `use` may only point downwards, and a `mod.rs` is a table of contents.

use crate::cargo::root;
use crate::sources::{code, rust_files};
use anyhow::{Context, Result, bail};
use std::fs;
use std::path::Path;

/// The folders of `docent-core`, from top to bottom. Folders on one line do not use each other, except those
/// of the [heart](HEART).
const ROOMS: [&[&str]; 8] = [
    &["cache"],
    &["claim", "line", "versioned", "watch"],
    &["hold"],
    &HEART,
    &["session"],
    &["node"],
    &["telemetry"],
    &["time", "task", "shared_map"],
];

/// Folders that form one mechanism, a client with its sessions and what they own, and use each other.
const HEART: [&str; 5] = ["client", "operation", "kept", "guard", "cleanup"];

/// Files of `docent-core` outside of all folders. Every folder may use them.
const LOOSE: [&str; 4] = ["error", "lib", "macros", "planted"];

/// The crates, from top to bottom. Crates on one line do not depend on each other.
const CRATES: [&[&str]; 8] = [
    &["docent-bench", "docent-cli"],
    &["docent-console"],
    &["docent-battery", "docent"],
    &["docent-testkit", "docent-inspect"],
    &[
        "docent-locks",
        "docent-election",
        "docent-queue",
        "docent-discovery",
        "docent-config",
        "docent-checker",
    ],
    &["docent-codec", "docent-server"],
    &["docent-core"],
    &["docent-proto"],
];

/// Fails if a file or crate uses something above it, or if a table of contents contains logic.
pub(crate) fn check() -> Result<()> {
    let root = root();
    let crates = root.join("crates");
    let mut wrong = loose(&crates.join("docent-core/src"))?;
    for file in rust_files(&root, "crates")? {
        // Tests may use everything.
        if !file.contains("/src/") || file.contains("/tests/") {
            continue;
        }
        let text = fs::read_to_string(root.join(&file)).with_context(|| file.clone())?;
        if let Some(inside) = file.strip_prefix("crates/docent-core/src/") {
            wrong.extend(climbs(inside, &text).into_iter().map(|what| format!("{file}:{what}")));
        }
        if file.ends_with("/mod.rs") {
            let more = |line| format!("{file}:{line}: a mod.rs may contain only a table of contents");
            wrong.extend(logic(&text).map(more));
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

/// Returns files at the root of `src` that are not allowed there.
fn loose(src: &Path) -> Result<Vec<String>> {
    let mut wrong = Vec::new();
    for entry in fs::read_dir(src)? {
        let path = entry?.path();
        let Some(name) = path.file_stem().and_then(|name| name.to_str()) else { continue };
        if path.is_file() && !LOOSE.contains(&name) {
            wrong.push(format!("docent-core/src/{name}.rs: a file must be in a folder"));
        }
        if path.is_dir() && floor(name).is_none() {
            wrong.push(format!("docent-core/src/{name}: this folder is missing in the order of folders"));
        }
    }
    Ok(wrong)
}

fn floor(room: &str) -> Option<usize> {
    ROOMS.iter().position(|rooms| rooms.contains(&room))
}

/// Returns the lines of a file of `docent-core` that use something above it.
fn climbs(file: &str, text: &str) -> Vec<String> {
    let room = file.split('/').next().unwrap_or_default();
    let Some(own) = floor(room) else { return Vec::new() };
    let mut wrong = Vec::new();
    for (number, line) in code(text) {
        for named in line.split("crate::").skip(1) {
            let named: String = named.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
            let is_heart = |room: &str| HEART.contains(&room);
            let is_own = named == room || is_heart(room) && is_heart(&named);
            if !is_own && floor(&named).is_some_and(|other| other <= own) {
                wrong.push(format!("{number}: {room} uses {named}, which is not below it"));
            }
        }
    }
    wrong
}

/// Returns the first line of a `mod.rs` that defines something.
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

/// Returns dependencies of a crate on crates that are not below it.
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
    fn only_folders_below_may_be_used() {
        assert_eq!(
            climbs("session/lease.rs", "use crate::client::Client;"),
            ["1: session uses client, which is not below it"]
        );
        assert_eq!(
            climbs("client/client.rs", "use crate::session::Session;\nuse crate::error::Error;"),
            [""; 0]
        );
        assert_eq!(climbs("guard/heartbeat.rs", "use crate::client::Client;"), [""; 0]);
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
