use super::habits::Habits;
use super::rust::Texts;
use crate::cargo::root;
use crate::sources::rust_files;
use anyhow::{Context, Result, ensure};
use std::fs;

/// Fails if a log message, an error or the help of a command has a phrase that is hard to read, or if a log
/// message has a full stop.
pub(crate) fn check() -> Result<()> {
    let (root, habits) = (root(), Habits::new()?);
    let (mut wrong, mut count) = (Vec::new(), 0);
    for path in rust_files(&root, "crates")? {
        let text = fs::read_to_string(root.join(&path)).with_context(|| format!("cannot read {path}"))?;
        if !is_product(&path) {
            continue;
        }
        let found = Texts::of(&text).with_context(|| path.clone())?;
        let events = found.events.iter().map(|event| (event.line, &event.message));
        let messages = found.messages.iter().map(|message| (message.line, &message.text));
        for (line, text) in events.clone().chain(messages) {
            count += 1;
            for (phrase, instead) in habits.found(text) {
                wrong.push(format!("{path}:{line}: \"{phrase}\" in \"{text}\"; write: {instead}"));
            }
        }
        let stopped = events.filter(|(_, text)| text.ends_with('.'));
        wrong.extend(stopped.map(|(line, text)| format!("{path}:{line}: \"{text}\" has a full stop")));
    }
    println!("{count} messages");
    ensure!(wrong.is_empty(), "{}", wrong.join("\n"));
    Ok(())
}

/// True for a file of a package that users have, and not a test.
pub(super) fn is_product(path: &str) -> bool {
    const INTERNAL: [&str; 4] = ["docent-battery", "docent-bench", "docent-checker", "xtask"];
    let mut parts = path.split('/').skip(1);
    let package = parts.next().unwrap_or_default();
    let is_source = parts.next() == Some("src");
    is_source && !INTERNAL.contains(&package) && parts.all(|part| !matches!(part, "tests" | "tests.rs"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_and_internal_packages_are_no_product() {
        assert!(is_product("crates/docent-core/src/line/draw.rs"));
        assert!(!is_product("crates/docent-core/src/session/own/machine/tests/links.rs"));
        assert!(!is_product("crates/docent-cli/tests/main.rs"));
        assert!(!is_product("crates/xtask/src/main.rs"));
    }
}
