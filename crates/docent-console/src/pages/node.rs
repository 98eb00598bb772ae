use super::draw::{Drawn, Part};
use super::html::{Pen, counted};
use docent::inspect::printable;
use docent::node::{Children, Node, Stat};
use maud::{Markup, html};
use similar::{ChangeTag, TextDiff};
use std::time::Duration;

/// Maximum number of bytes of a node's data on a page.
const MAX_SHOWN: usize = 64 * 1024;

/// Maximum number of children on a page.
const MAX_CHILDREN: usize = 1_000;

/// Maximum number of levels of indentation.
const MAX_INDENT: usize = 40;

/// Longest time that a comparison of two values may take.
const PATIENCE: Duration = Duration::from_millis(500);

/// Draws the page about a path without a node.
pub(crate) fn missing_node(path: &str) -> Drawn {
    let stat = html! {
        section #stat .block {
            p { "When this page was loaded, there was no node here. A lock has one only while a client uses it, or has just done so." }
        }
    };
    Drawn {
        title: printable(path),
        parts: vec![Part::Block("about", no_recipe()), Part::Block("stat", stat)],
    }
}

/// The block that events replace once a recipe is in use here.
pub(super) fn no_recipe() -> Markup {
    html! { section #about .block data-kind="" { p { "No recipe is in use here now." } } }
}

/// Draws a node and its children, as they are read now.
pub(crate) fn node_page(path: &str, stat: &Stat, children: &Children, pen: &Pen<'_>) -> Drawn {
    let mut names: Vec<_> = children.names.iter().collect();
    names.sort_unstable();
    let below = |name: &str| format!("{}/{name}", path.trim_end_matches('/'));
    let (above, _) = path.rsplit_once('/').unwrap_or_default();
    let block = html! {
        section #children .block {
            @if path != "/" { p { a.path href=(pen.at(if above.is_empty() { "/" } else { above })) { "Parent" } } }
            h2 { (counted(names.len(), "child", "children")) }
            ul.children {
                @for name in names.iter().take(MAX_CHILDREN) {
                    li { a.path href=(pen.at(&below(name))) { (printable(name)) } }
                }
            }
            @if names.len() > MAX_CHILDREN { p { "and " (names.len() - MAX_CHILDREN) " more" } }
        }
    };
    let stat = html! {
        section #stat .block {
            p { "The node and its children are shown as they were when this page was loaded." }
            (facts(stat, pen)) p { (pen.data(path, "Data of the node")) }
        }
    };
    let parts = [("about", no_recipe()), ("stat", stat), ("children", block)];
    Drawn { title: printable(path), parts: parts.map(|(id, part)| Part::Block(id, part)).into() }
}

fn facts(stat: &Stat, pen: &Pen<'_>) -> Markup {
    html! {
        dl.facts {
            div { dt { "Size" } dd { (counted(stat.data_length, "byte", "bytes")) } }
            div { dt { "Version" } dd { (stat.version) } }
            div { dt { "Created" } dd { (pen.moment(stat.created)) } }
            div { dt { "Changed" } dd { (pen.moment(stat.modified)) } }
            div { dt { "Transactions" } dd { (format!("created {:#x}, changed {:#x}", stat.czxid, stat.mzxid)) } }
            @if let Some(owner) = stat.owner { div { dt { "Session" } dd { (pen.session(Some(owner))) } } }
        }
    }
}

/// Draws the data of a node, as it is read now.
pub(crate) fn data_page(path: &str, node: &Node, pen: &Pen<'_>) -> Drawn {
    let shown = &node.data[..node.data.len().min(MAX_SHOWN)];
    let block = html! {
        section #data .block {
            p { (pen.path(path)) }
            (facts(&node.stat, pen))
            pre.value { (text(shown)) }
            @if shown.len() < node.data.len() { p { "The first " (MAX_SHOWN) " bytes are shown." } }
        }
    };
    Drawn { title: "Data".to_owned(), parts: vec![Part::Block("data", block)] }
}

/// Draws the difference between an earlier value of a configuration and the current one.
pub(crate) fn diff_page(path: &str, versions: (i32, i32), old: &[u8], new: &[u8], pen: &Pen<'_>) -> Drawn {
    let is_cut = old.len().max(new.len()) > MAX_SHOWN;
    let is_same = old == new;
    let (old, new) = (text(&old[..old.len().min(MAX_SHOWN)]), text(&new[..new.len().min(MAX_SHOWN)]));
    let diff = TextDiff::configure().timeout(PATIENCE).diff_lines(&old, &new);
    let block = html! {
        section #diff .block {
            p { (pen.path(path)) ", from version " (versions.0) " to version " (versions.1) }
            @if is_cut { p { "Only the first " (MAX_SHOWN) " bytes of each value are compared." } }
            @if old == new {
                p { @if is_same { "The values are the same." } @else { "The values differ only in spaces and line ends." } }
            }
            pre.diff {
                @for change in diff.iter_all_changes() {
                    @let line = change.value().trim_end_matches('\n');
                    @match change.tag() {
                        ChangeTag::Delete => span.del { "- " (line) "\n" },
                        ChangeTag::Insert => span.add { "+ " (line) "\n" },
                        ChangeTag::Equal => span.same { "  " (line) "\n" },
                    }
                }
            }
        }
    };
    Drawn { title: "Change of a configuration".to_owned(), parts: vec![Part::Block("diff", block)] }
}

/// Returns data as lines of text, in which characters that are invisible or not UTF-8 are escaped. JSON in
/// one line gets line breaks; nothing else of it changes.
fn text(data: &[u8]) -> String {
    let is_one_line = !data.trim_ascii().contains(&b'\n');
    let is_json = is_one_line && serde_json::from_slice::<serde::de::IgnoredAny>(data).is_ok();
    let broken = std::str::from_utf8(data).ok().filter(|_| is_json).map(with_breaks);
    let lines = broken.as_deref().map_or(data, str::as_bytes).split(|byte| *byte == b'\n');
    lines.map(|line| visible(line.strip_suffix(b"\r").unwrap_or(line))).collect::<Vec<_>>().join("\n")
}

/// Adds line breaks and indentation to JSON.
fn with_breaks(json: &str) -> String {
    let (mut out, mut depth, mut is_string, mut is_escaped) = (String::new(), 0_usize, false, false);
    let mut chars = json.trim().chars().peekable();
    let line = |out: &mut String, depth: usize| {
        out.push('\n');
        out.extend(std::iter::repeat_n("  ", depth.min(MAX_INDENT)));
    };
    while let Some(char) = chars.next() {
        if is_string {
            out.push(char);
            is_string = is_escaped || char != '"';
            is_escaped = !is_escaped && char == '\\';
            continue;
        }
        match char {
            '"' => {
                is_string = true;
                out.push(char);
            }
            '{' | '[' => {
                out.push(char);
                while chars.next_if(char::is_ascii_whitespace).is_some() {}
                if let Some(end) = chars.next_if(|next| matches!(next, '}' | ']')) {
                    out.push(end);
                } else {
                    depth += 1;
                    line(&mut out, depth);
                }
            }
            '}' | ']' => {
                depth = depth.saturating_sub(1);
                line(&mut out, depth);
                out.push(char);
            }
            ',' => {
                out.push(char);
                line(&mut out, depth);
            }
            ':' => out.push_str(": "),
            char if char.is_ascii_whitespace() => {}
            char => out.push(char),
        }
    }
    out
}

/// Escapes a line, except for backslashes and tabs, which do no harm in a browser.
fn visible(line: &[u8]) -> String {
    let words = |part: &[u8]| part.split(|byte| *byte == b'\t').map(printable).collect::<Vec<_>>().join("\t");
    line.split(|byte| *byte == b'\\').map(words).collect::<Vec<_>>().join("\\")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_is_shown_as_lines_without_invisible_characters() {
        assert_eq!(text(b"a\tb\\n\r\nc\x1b\xff"), "a\tb\\n\nc\\x1b\\xff");
        let json = r#"{"b":[1,{}],"a":12345678901234567890123, "a":"x,\":{"}"#;
        let lines = [
            "{",
            "  \"b\": [",
            "    1,",
            "    {}",
            "  ],",
            "  \"a\": 12345678901234567890123,",
            "  \"a\": \"x,\\\":{\"",
            "}",
        ];
        assert_eq!(text(json.as_bytes()), lines.join("\n"));
        assert_eq!(text("{\"a\":\n1}".as_bytes()), "{\"a\":\n1}");
    }
}
