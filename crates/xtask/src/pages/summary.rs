//! The table of contents of the book, `docs/SUMMARY.md`.

use super::markdown::Page;
use super::relink::relinked;

/// Path of the table of contents.
pub(super) const SUMMARY: &str = "docs/SUMMARY.md";

/// Folder of the book.
pub(super) const BOOK: &str = "docs/";

/// An entry of the table of contents.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Entry {
    /// Line of the entry, counted from 1.
    line: usize,
    /// Number of spaces before the entry.
    indent: usize,
    /// Title of the entry.
    pub(super) title: String,
    /// Path of its page from the root of the repository. None for an entry that only groups others.
    pub(super) path: Option<String>,
}

/// Returns violations of the rules for the table of contents: each page of the book is listed once, lists are
/// nested by two spaces, and decisions are in the order of their numbers.
pub(super) fn check(pages: &[Page]) -> Vec<String> {
    let Some(summary) = pages.iter().find(|page| page.path == SUMMARY) else {
        return vec![format!("{SUMMARY} does not exist")];
    };
    let (entries, mut wrong) = parse(&summary.text);
    wrong.extend(unlisted(pages, &entries));
    wrong.extend(misplaced(&entries));
    wrong
}

/// Returns the entries of a table of contents, and its lines that mdBook would not understand.
pub(super) fn parse(text: &str) -> (Vec<Entry>, Vec<String>) {
    let (mut entries, mut wrong) = (Vec::new(), Vec::new());
    for (index, line) in text.lines().enumerate() {
        if line.is_empty() || line.starts_with("# ") || line == "---" {
            continue;
        }
        match entry(index + 1, line) {
            Some(entry) => entries.push(entry),
            None => wrong.push(format!("{SUMMARY}:{}: expected `- [title](page.md)`", index + 1)),
        }
    }
    (entries, wrong)
}

/// Returns the text of the page at `path` with links out of the book as links to the repository. `exists`
/// returns whether the book has a file.
pub(super) fn for_book(path: &str, text: &str, exists: impl Fn(&str) -> bool) -> String {
    relinked(path, text, |target| {
        let inside = target.path.starts_with(BOOK) && exists(&target.path);
        (!inside).then(|| target.in_repository())
    })
}

fn entry(line: usize, text: &str) -> Option<Entry> {
    let item = text.trim_start();
    let (title, target) = item.strip_prefix("- [")?.strip_suffix(')')?.split_once("](")?;
    let path = (!target.is_empty()).then(|| format!("{BOOK}{target}"));
    Some(Entry { line, indent: text.len() - item.len(), title: title.to_owned(), path })
}

fn unlisted(pages: &[Page], entries: &[Entry]) -> Vec<String> {
    let mut wrong = Vec::new();
    for page in pages.iter().filter(|page| page.path.starts_with(BOOK) && page.path != SUMMARY) {
        match entries.iter().filter(|entry| entry.path.as_deref() == Some(&page.path)).count() {
            0 => wrong.push(format!("{SUMMARY}: {} is not listed", page.path)),
            1 => {}
            n => wrong.push(format!("{SUMMARY}: {} is listed {n} times", page.path)),
        }
    }
    wrong
}

fn misplaced(entries: &[Entry]) -> Vec<String> {
    let (mut wrong, mut last) = (Vec::new(), 0);
    for pair in entries.windows(2) {
        if pair[1].indent % 2 != 0 || pair[1].indent > pair[0].indent + 2 {
            wrong.push(format!("{SUMMARY}:{}: lists are nested by two spaces", pair[1].line));
        }
    }
    for entry in entries {
        let number = entry.path.as_deref().and_then(|path| path.strip_prefix("docs/decisions/"));
        let number = number.and_then(|name| name.split('-').next()).and_then(|number| number.parse().ok());
        if let Some(number) = number {
            if number < last {
                wrong.push(format!("{SUMMARY}:{}: decisions are in the order of their numbers", entry.line));
            }
            last = number;
        }
    }
    wrong
}

#[cfg(test)]
mod tests {
    use super::super::relink::REPOSITORY;
    use super::*;

    const PAGES: [&str; 3] = ["docs/a.md", "docs/decisions/0001-b.md", "docs/decisions/0002-c.md"];

    fn wrong(summary: &str) -> Vec<String> {
        let mut pages: Vec<Page> =
            PAGES.iter().map(|path| Page::new((*path).into(), String::new())).collect();
        pages.push(Page::new(SUMMARY.into(), summary.into()));
        check(&pages)
    }

    #[test]
    fn a_table_of_contents_lists_every_page_once() {
        let summary = "# Summary\n\n- [A](a.md)\n- [Decisions]()\n  - [B](decisions/0001-b.md)\n";
        assert_eq!(wrong(&format!("{summary}  - [C](decisions/0002-c.md)\n")), [""; 0]);
        assert_eq!(wrong(summary), ["docs/SUMMARY.md: docs/decisions/0002-c.md is not listed"]);
        let twice = format!("{summary}  - [C](decisions/0002-c.md)\n- [A](a.md)\n");
        assert_eq!(wrong(&twice), ["docs/SUMMARY.md: docs/a.md is listed 2 times"]);
    }

    #[test]
    fn the_order_of_decisions_and_the_nesting_of_lists_are_checked() {
        let swapped = "- [A](a.md)\n- [C](decisions/0002-c.md)\n- [B](decisions/0001-b.md)\n";
        assert_eq!(wrong(swapped), ["docs/SUMMARY.md:3: decisions are in the order of their numbers"]);
        let deep = "- [A](a.md)\n    - [B](decisions/0001-b.md)\n    - [C](decisions/0002-c.md)\n";
        assert_eq!(wrong(deep), ["docs/SUMMARY.md:2: lists are nested by two spaces"]);
    }

    #[test]
    fn links_out_of_the_book_lead_to_the_repository() {
        let text = "[a](b.md#c) [d](../crates/d.rs) [e](decisions/)\n";
        let expected = format!("[a](b.md#c) [d]({REPOSITORY}crates/d.rs) [e]({REPOSITORY}docs/decisions)\n");
        assert_eq!(for_book("docs/a.md", text, |path| path == "docs/b.md"), expected);
    }

    #[test]
    fn a_line_that_is_no_entry_is_reported() {
        let text = "- [A](a.md)\n- [B](decisions/0001-b.md)\n- [C](decisions/0002-c.md)\nText.\n";
        assert_eq!(wrong(text), ["docs/SUMMARY.md:4: expected `- [title](page.md)`"]);
        assert_eq!(check(&[]), ["docs/SUMMARY.md does not exist"]);
    }
}
