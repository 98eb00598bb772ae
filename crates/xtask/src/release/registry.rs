//! What crates.io has.

use crate::cargo::cargo;
use anyhow::{Context, Result, bail};
use std::process::Command;

/// Returns the newest version of a crate on crates.io, or `None` if it is not published.
pub(super) fn newest(name: &str) -> Result<Option<String>> {
    let Some(text) = info(name)? else { return Ok(None) };
    let version = text.lines().find_map(|line| line.strip_prefix("version: "));
    let version = version.and_then(|rest| rest.split_whitespace().next());
    Ok(Some(version.with_context(|| format!("cargo info {name} states no version"))?.to_owned()))
}

/// Returns true if crates.io has this version of a crate.
pub(super) fn has(name: &str, version: &str) -> Result<bool> {
    Ok(info(&format!("{name}@{version}"))?.is_some())
}

fn info(what: &str) -> Result<Option<String>> {
    let mut command: Command = cargo("info --quiet --registry crates-io");
    let output = command.arg(what).output()?;
    let error = String::from_utf8_lossy(&output.stderr);
    if output.status.success() {
        return Ok(Some(String::from_utf8(output.stdout)?));
    }
    if error.contains("could not find") {
        return Ok(None);
    }
    bail!("cannot learn from crates.io whether {what} is published: {}", error.trim())
}
