//! Links of a page that is shown at another place than in the repository.

use super::links::{is_relative, join};
use super::markdown::without_code_bytes;

/// The repository on its host.
pub(crate) const REPOSITORY: &str = "https://github.com/docent-rs/docent/blob/main/";

/// Files of the repository as they are, for pictures.
const RAW: &str = "https://raw.githubusercontent.com/docent-rs/docent/main/";

/// Target of a link on a page.
#[derive(Debug)]
pub(super) struct Target {
    /// Path from the root of the repository.
    pub(super) path: String,
    /// Name of the heading, without its `#`.
    pub(super) anchor: String,
}

impl Target {
    /// The target in the repository on its host.
    pub(super) fn in_repository(&self) -> String {
        let raw = [".svg", ".png"].iter().any(|ending| self.path.ends_with(ending));
        let base = if raw { RAW } else { REPOSITORY };
        self.with_anchor(&format!("{base}{}", self.path))
    }

    /// `link` with the anchor, if there is one.
    pub(super) fn with_anchor(&self, link: &str) -> String {
        if self.anchor.is_empty() { link.to_owned() } else { format!("{link}#{}", self.anchor) }
    }
}

/// Returns the text of the page at `path` with `to(target)` in place of each link to another file of the
/// repository. A link for which `to` returns None stays.
pub(super) fn relinked(path: &str, text: &str, to: impl Fn(&Target) -> Option<String>) -> String {
    let (mut page, mut inside) = (String::new(), false);
    for line in text.lines() {
        inside ^= line.trim_start().starts_with("```");
        page.push_str(&if inside { line.to_owned() } else { relinked_line(path, line, &to) });
        page.push('\n');
    }
    page
}

fn relinked_line(path: &str, line: &str, to: &impl Fn(&Target) -> Option<String>) -> String {
    // Code contains no links, and blanking it out keeps every other position.
    let plain = without_code_bytes(line);
    let (mut done, mut from) = (String::new(), 0);
    for (middle, _) in plain.match_indices("](") {
        let start = middle + 2;
        let Some(end) = plain[start..].find(')').map(|length| start + length) else { break };
        let (file, anchor) = line[start..end].split_once('#').unwrap_or((&line[start..end], ""));
        if is_relative(&line[start..end])
            && !file.is_empty()
            && let Some(path) = join(path, file)
            && let Some(link) = to(&Target { path, anchor: anchor.to_owned() })
        {
            done.push_str(&line[from..start]);
            done.push_str(&link);
            from = end;
        }
    }
    done + &line[from..]
}

/// Returns `text` with `note` in place of each diagram, for places that cannot draw diagrams.
pub(super) fn without_diagrams(text: &str, note: &str) -> String {
    let (mut page, mut inside) = (String::new(), false);
    for line in text.lines() {
        if line.starts_with("```mermaid") {
            inside = true;
            page.push_str(note);
            page.push('\n');
        } else if inside {
            inside = !line.starts_with("```");
        } else {
            page.push_str(line);
            page.push('\n');
        }
    }
    page
}

#[cfg(test)]
mod tests {
    use super::*;

    fn linked(text: &str) -> String {
        relinked("docs/guide/a.md", text, |target| Some(target.in_repository()))
    }

    #[test]
    fn links_into_the_repository_become_links_to_its_host() {
        let text = "see [the `a`](b.md#c), [b](https://b.org), [up](../d.md) and [here](#e).\n";
        let expected = format!(
            "see [the `a`]({REPOSITORY}docs/guide/b.md#c), [b](https://b.org), [up]({REPOSITORY}docs/d.md) and \
             [here](#e).\n"
        );
        assert_eq!(linked(text), expected);
        assert_eq!(linked("![p](../p.svg)\n"), format!("![p]({RAW}docs/p.svg)\n"));
    }

    #[test]
    fn code_stays_as_it_is() {
        let text = "```rust\nlet a = b[c](d.e);\n```\n`[f](g.h)` ä\n";
        assert_eq!(linked(text), text);
    }

    #[test]
    fn a_note_takes_the_place_of_a_diagram() {
        let text = "a\n```mermaid\nb\n```\n```rust\nc\n```\n";
        assert_eq!(without_diagrams(text, "note"), "a\nnote\n```rust\nc\n```\n");
    }
}
