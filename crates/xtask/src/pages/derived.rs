use super::links::is_relative;
use super::markdown::without_code;

/// The facade's pages that are generated from the README: the page for package registries, and the page for
/// rustdoc.
pub(super) const PAGES: [&str; 2] = ["crates/docent/README.md", "crates/docent/src/front.md"];

/// Text appended to each of these pages. The comment is not rendered.
const NOTE: &str = "
Pages that are named here without a link are in the `docs` folder of the repository.

<!-- Generated from the README of the repository by `cargo xtask pages`. -->
";

/// Header of the table column that names types, which are linked for rustdoc.
const TYPES: &str = "types";

/// Returns the pages that are generated from `readme`, by path. `names` is the part of rustdoc's page that
/// lists the modules.
pub(super) fn pages(readme: &str, names: &str) -> [(&'static str, String); 2] {
    let plain = format!("{}{NOTE}", without_relative(readme));
    let [registry, rustdoc] = PAGES;
    let linked = with_names(&with_items(&plain), names);
    [(registry, plain), (rustdoc, linked)]
}

/// Returns `text` without pictures of the repository, and with only the text of links into the repository.
fn without_relative(text: &str) -> String {
    let (mut page, mut inside, mut skip_blank) = (String::new(), false, false);
    for line in text.lines() {
        inside ^= line.starts_with("```");
        if !inside && is_picture(line) {
            skip_blank = true;
            continue;
        }
        if std::mem::take(&mut skip_blank) && line.is_empty() {
            continue;
        }
        page.push_str(&if inside { line.to_owned() } else { unlinked(line) });
        page.push('\n');
    }
    page
}

fn is_picture(line: &str) -> bool {
    let target = line.strip_prefix("![").and_then(|rest| rest.split_once("](")).map(|(_, target)| target);
    target.is_some_and(|target| target.ends_with(')') && is_relative(target))
}

/// Returns `line` with `text` in place of each `[text](path)`.
fn unlinked(line: &str) -> String {
    let mut line = line.to_owned();
    let mut from = 0;
    // Code contains no links, and blanking it out keeps every other position.
    while let Some(middle) = without_code_bytes(&line)[from..].find("](").map(|found| from + found) {
        let end = line[middle..].find(')').map(|found| middle + found);
        let start = without_code_bytes(&line)[..middle].rfind('[');
        let (Some(start), Some(end)) = (start, end) else { break };
        if is_relative(&line[middle + 2..end]) {
            line = format!("{}{}{}", &line[..start], &line[start + 1..middle], &line[end + 1..]);
            from = middle - 1;
        } else {
            from = end;
        }
    }
    line
}

/// Does the same as [`without_code`], keeping the position of each byte.
fn without_code_bytes(line: &str) -> String {
    let blank = |c: char| if c.is_ascii() { c.to_string() } else { "_".repeat(c.len_utf8()) };
    without_code(&line.chars().map(blank).collect::<String>())
}

/// Returns `text` with rustdoc links in the columns of tables that name types.
fn with_items(text: &str) -> String {
    let (mut page, mut column) = (String::new(), None);
    for line in text.lines() {
        let mut cells: Vec<String> = line.split('|').map(str::to_owned).collect();
        if !line.starts_with('|') {
            column = None;
        } else if column.is_none() {
            column = cells.iter().position(|cell| cell.trim() == TYPES);
        } else if let Some(cell) = column.and_then(|column| cells.get_mut(column)) {
            *cell = cell.split(", ").map(linked).collect::<Vec<_>>().join(", ");
        }
        page.push_str(&cells.join("|"));
        page.push('\n');
    }
    page
}

/// Returns `text` with `names` inserted before its first section.
fn with_names(text: &str, names: &str) -> String {
    let (intro, parts) = text.split_once("\n## ").unwrap_or((text, ""));
    format!("{intro}\n{names}\n## {parts}")
}

fn linked(item: &str) -> String {
    let name = item.trim();
    if name.starts_with('`') { item.replace(name, &format!("[{name}]")) } else { item.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_into_the_repository_become_words_and_other_links_stay() {
        let text = "see [the `a`](docs/a.md), … [b](https://b.org) and [c](docs/c.md#d).\n";
        assert_eq!(without_relative(text), "see the `a`, … [b](https://b.org) and c.\n");
    }

    #[test]
    fn pictures_of_the_repository_are_omitted() {
        assert_eq!(without_relative("a\n\n![p](docs/p.svg)\n\nb\n"), "a\n\nb\n");
    }

    #[test]
    fn code_stays_as_it_is() {
        let text = "```rust\nlet a = b[c](d.e);\n```\n`[f](g.h)`\n";
        assert_eq!(without_relative(text), text);
    }

    #[test]
    fn names_are_listed_below_the_introduction() {
        assert_eq!(with_names("# A\n\na\n\n## B\n", "## N\n"), "# A\n\na\n\n## N\n\n## B\n");
    }

    #[test]
    fn types_are_linked_where_a_table_names_them() {
        let table = "| recipe | types |\n|---|---|\n| `x` | `Mutex`, `RwLock` |\n\n`Other`\n";
        let linked = "| recipe | types |\n|---|---|\n| `x` | [`Mutex`], [`RwLock`] |\n\n`Other`\n";
        assert_eq!(with_items(table), linked);
    }
}
