//! What a page tells its reader to do.

use crate::pages::markdown::{Block, blocks};

/// Something that a page tells its reader to do.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Step {
    /// Line of the page, counted from 1.
    pub(super) line: usize,
    pub(super) kind: Kind,
    /// Commands, or the content of a file.
    pub(super) code: String,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Commands that end on their own.
    Commands,
    /// A command that runs until Ctrl-C.
    Endless,
    /// A file to write, with its path.
    File(String),
    /// Commands that the page marks with `norun`, because they need software that a test machine does not
    /// have.
    NotRun,
}

impl Step {
    /// First command line, or the path of the file.
    pub(super) fn title(&self) -> &str {
        match &self.kind {
            Kind::File(path) => path,
            _ => self.code.lines().next().unwrap_or_default(),
        }
    }
}

/// Returns the steps of a page: blocks tagged `sh`, and blocks that follow the name of a file.
pub(super) fn steps(page: &str) -> Vec<Step> {
    let lines: Vec<&str> = page.lines().collect();
    blocks(page).into_iter().flat_map(|block| of_block(&lines[..block.line - 1], block)).collect()
}

fn of_block(before: &[&str], block: Block) -> Vec<Step> {
    let Block { line, info, code } = block;
    let mut words = info.split([' ', ',']);
    if words.next() != Some("sh") {
        return file(before).map(|path| Step { line, kind: Kind::File(path), code }).into_iter().collect();
    }
    let kind = match words.next() {
        Some("norun") => Kind::NotRun,
        Some("endless") => Kind::Endless,
        _ => Kind::Commands,
    };
    if kind == Kind::Commands && code.lines().any(is_endless) {
        return each_line(line, &code);
    }
    vec![Step { line, kind, code }]
}

/// Splits a block in which one command runs until Ctrl-C.
fn each_line(line: usize, code: &str) -> Vec<Step> {
    let kind = |command| if is_endless(command) { Kind::Endless } else { Kind::Commands };
    let commands = code.lines().enumerate();
    commands
        .map(|(index, command)| Step {
            line: line + 1 + index,
            kind: kind(command),
            code: format!("{command}\n"),
        })
        .collect()
}

fn is_endless(command: &str) -> bool {
    ["docent elect ", "docent console "].iter().any(|endless| command.starts_with(endless))
}

/// Returns the file that the paragraph before a block names, as **`src/main.rs`** or "complete
/// `src/main.rs`".
fn file(before: &[&str]) -> Option<String> {
    let paragraph: Vec<&str> = before
        .iter()
        .rev()
        .skip_while(|line| line.trim().is_empty())
        .take_while(|line| !line.trim().is_empty())
        .copied()
        .collect();
    let text = paragraph.into_iter().rev().collect::<Vec<_>>().join(" ");
    let (_, rest) = text.split_once("**`").or_else(|| text.split_once("complete `"))?;
    Some(rest.split_once('`')?.0.to_owned())
}

/// Returns the commands for a checkout: the first cells of table rows that are a cargo command.
pub(super) fn table_commands(page: &str) -> Vec<Step> {
    let command =
        |line: &str| line.strip_prefix("| `")?.split_once("` |").map(|(command, _)| command.to_owned());
    let rows = page.lines().enumerate().filter_map(|(index, line)| Some((index + 1, command(line)?)));
    rows.filter(|(_, command)| command.starts_with("cargo "))
        .map(|(line, code)| Step { line, kind: Kind::Commands, code })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(page: &str) -> Vec<Kind> {
        steps(page).into_iter().map(|step| step.kind).collect()
    }

    #[test]
    fn shell_blocks_are_commands_unless_marked() {
        let page = "```sh\na\n```\n```sh norun\nb\n```\n```sh endless\nc\n```\n```rust\nd\n```\n";
        assert_eq!(kinds(page), [Kind::Commands, Kind::NotRun, Kind::Endless]);
    }

    #[test]
    fn a_block_after_the_name_of_a_file_is_its_content() {
        let page = "**`zoo.cfg`**\n\n```properties\ntickTime=2000\n```\n\nThis is a\ncomplete `src/main.rs`. It\nruns.\n\n```rust\n```\n";
        assert_eq!(kinds(page), [Kind::File("zoo.cfg".into()), Kind::File("src/main.rs".into())]);
        assert_eq!(steps(page)[0].code, "tickTime=2000\n");
    }

    #[test]
    fn a_block_without_a_file_is_left_to_other_checks() {
        assert_eq!(kinds("See `src/main.rs`:\n\n```rust\n```\n"), []);
    }

    #[test]
    fn commands_that_do_not_end_run_until_they_are_interrupted() {
        let page = "```sh\ndocent lock /a -- b\ndocent elect /a -- b\ndocent console # a page\n```\n";
        assert_eq!(kinds(page), [Kind::Commands, Kind::Endless, Kind::Endless]);
        assert_eq!(steps(page)[1].line, 3);
    }

    #[test]
    fn commands_for_a_checkout_are_first_cells_of_a_table() {
        let page = "| in a checkout | does |\n|---|---|\n| `cargo run --example tour` | shows `cargo x` |\n| a | `cargo y` |\n";
        let steps = table_commands(page);
        assert_eq!(steps.iter().map(Step::title).collect::<Vec<_>>(), ["cargo run --example tour"]);
    }
}
