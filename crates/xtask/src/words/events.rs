//! The table of all log events, made from the code and the comment above each of them:
//!
//! ```text
//! // Event: <what happened>
//! // Action: <what an operator does about it>
//! warn!(target: "docent::lock", client, path, "…");
//! ```
//!
//! Each event names its target, and the client in the field `client`. If there is no client, a line
//! `// Without client: <reason>` in the comment says why.

use super::messages::is_product;
use super::rust::{Event, LEVELS, Texts};
use crate::sources::rust_files;
use anyhow::{Context, Result, bail, ensure};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

/// The page that has the table.
pub(crate) const PAGE: &str = "docs/guide/observability.md";

const BEGIN: &str = "<!-- The table below is made from the code by `cargo xtask pages`. -->\n";
/// Start of all targets.
const TARGET: &str = "docent::";

/// Mark of an event that has no field `client`.
const WITHOUT_CLIENT: &str = "Without client:";

const END: &str = "<!-- End of the table. -->\n";

/// An event, and what the comment above it says.
#[derive(Debug)]
struct Described {
    event: Event,
    meaning: String,
    action: Option<String>,
}

/// `text`, the page, with the table as the code has it now.
pub(crate) fn page(root: &Path, text: &str) -> Result<String> {
    with_table(text, &table(root)?)
}

fn with_table(text: &str, table: &str) -> Result<String> {
    let (before, rest) = text.split_once(BEGIN).with_context(|| format!("{PAGE} has no line {BEGIN}"))?;
    let (_, after) = rest.split_once(END).with_context(|| format!("{PAGE} has no line {END}"))?;
    Ok(format!("{before}{BEGIN}{table}{END}{after}"))
}

fn table(root: &Path) -> Result<String> {
    let mut targets: BTreeMap<String, Vec<Described>> = BTreeMap::new();
    for path in rust_files(root, "crates")?.iter().filter(|path| is_product(path)) {
        let text = fs::read_to_string(root.join(path)).with_context(|| format!("cannot read {path}"))?;
        let described = described(&text).with_context(|| path.clone())?;
        for described in described {
            let target = described.event.target.clone().unwrap_or_default();
            targets.entry(target).or_default().push(described);
        }
    }
    let mut table = String::new();
    for (target, mut events) in targets {
        let level = |described: &Described| LEVELS.iter().position(|level| *level == described.event.level);
        events.sort_by(|a, b| (level(a), &a.event.message).cmp(&(level(b), &b.event.message)));
        let mut rows: Vec<_> = events.iter().map(row).collect();
        rows.dedup();
        write!(
            table,
            "\n#### `{target}`\n\n| level | message | fields | meaning | what to do |\n|---|---|---|---|---|\n"
        )?;
        table.push_str(&rows.concat());
    }
    table.push('\n');
    Ok(table)
}

fn row(described: &Described) -> String {
    let Described { event, meaning, action } = described;
    let fields: Vec<_> = event.fields.iter().map(|field| format!("`{field}`")).collect();
    let cells = [event.level, &event.message, &fields.join(", "), meaning, action.as_deref().unwrap_or("–")];
    let cells = cells.map(|cell| cell.replace('|', "\\|").replace('<', "&lt;"));
    format!("| {} |\n", cells.join(" | "))
}

/// The events of a file, each with the comment above it.
fn described(text: &str) -> Result<Vec<Described>> {
    let lines: Vec<&str> = text.lines().collect();
    let (mut described, mut from) = (Vec::new(), 0);
    for event in Texts::of(text)?.events {
        let line = event.line - 1;
        let above = (from..line).rev().find(|at| starts(lines[*at], "Event:").is_some());
        let Some(at) = above else {
            bail!("line {}: no comment \"// Event: …\" above \"{}\"", event.line, event.message)
        };
        let (meaning, action) = comment(&lines[at..line]);
        if !event.target.as_ref().is_some_and(|target| target.starts_with(TARGET)) {
            bail!("line {}: \"{}\" needs a target such as \"{TARGET}lock\"", event.line, event.message)
        }
        let is_marked = lines[at..line].iter().any(|line| starts(line, WITHOUT_CLIENT).is_some());
        let has_client = event.fields.iter().any(|field| field == "client");
        if has_client == is_marked {
            bail!(
                "line {}: \"{}\" needs either a field client or a line {WITHOUT_CLIENT}",
                event.line,
                event.message
            )
        }
        ensure!(meaning.ends_with('.'), "line {}: \"{meaning}\" does not end with a full stop", at + 1);
        from = line + 1;
        described.push(Described { event, meaning, action });
    }
    let comments = lines.iter().filter(|line| starts(line, "Event:").is_some()).count();
    ensure!(comments == described.len(), "{comments} comments of events, but {} events", described.len());
    Ok(described)
}

/// The rest of a comment line that starts with `word`.
fn starts<'l>(line: &'l str, word: &str) -> Option<&'l str> {
    line.trim_start().strip_prefix("// ")?.strip_prefix(word).map(str::trim)
}

/// Meaning and action in the comment that `lines` begin with.
fn comment(lines: &[&str]) -> (String, Option<String>) {
    let (mut meaning, mut action) = (String::new(), None::<String>);
    for line in lines.iter().map_while(|line| line.trim_start().strip_prefix("// ")) {
        let line = line.trim();
        if line.starts_with(WITHOUT_CLIENT) {
            continue;
        }
        if let Some(text) = line.strip_prefix("Action:") {
            action = Some(text.trim().to_owned());
        } else if let Some(text) = line.strip_prefix("Event:") {
            text.trim().clone_into(&mut meaning);
        } else {
            let part = action.as_mut().unwrap_or(&mut meaning);
            part.push(' ');
            part.push_str(line);
        }
    }
    (meaning, action)
}

#[cfg(test)]
mod tests {
    use super::*;

    const CODE: &str = "fn a() {
    // Another comment.
    // Event: A node was
    // deleted.
    // Action: Find out
    // why.
    warn!(target: \"docent::node\", %client, %path, \"node deleted\");
    // Event: All is well.
    // Without client: a reason.
    once(|| info!(target: \"docent::node\", \"well\"));
}
";

    #[test]
    fn an_event_is_described_by_the_comment_above_it() {
        let rows: Vec<_> = described(CODE).unwrap().iter().map(row).collect();
        assert_eq!(
            rows,
            [
                "| warn | node deleted | `client`, `path` | A node was deleted. | Find out why. |\n",
                "| info | well |  | All is well. | – |\n"
            ]
        );
    }

    #[test]
    fn an_event_without_a_comment_and_a_comment_without_an_event_are_refused() {
        let error = |code: &str| described(code).unwrap_err().to_string();
        let without = CODE.replace("    // Event: All is well.\n", "");
        assert_eq!(error(&without), "line 9: no comment \"// Event: …\" above \"well\"");
        let no_client = CODE.replace("%client, ", "");
        assert!(error(&no_client).contains("needs either a field client"));
        let no_target = CODE.replace("target: \"docent::node\", %client", "%client");
        assert!(error(&no_target).contains("needs a target"));
        let more = format!("{CODE}// Event: Another one.\n");
        assert_eq!(error(&more), "3 comments of events, but 2 events");
    }

    #[test]
    fn the_table_is_between_its_two_lines() {
        let text = format!("# A\n\n{BEGIN}old\n{END}\nrest\n");
        assert_eq!(with_table(&text, "new\n").unwrap(), format!("# A\n\n{BEGIN}new\n{END}\nrest\n"));
        let error = with_table("# A\n", "new\n").unwrap_err().to_string();
        assert!(error.starts_with("docs/guide/observability.md has no line"), "{error}");
    }
}
