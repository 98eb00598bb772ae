//! The guides as modules of the facade, so they are on docs.rs and part of the package.

use super::markdown::Page;
use super::relink::{REPOSITORY, Target, relinked, without_diagrams};
use super::summary::{self, SUMMARY};
use anyhow::{Context, Result};
use std::fmt::Write as _;

/// Folder of the guides.
const GUIDES: &str = "docs/guide/";

/// Folder of the generated module.
pub(super) const MODULE: &str = "crates/docent/src/guide/";

/// Lines between the list of guides and the modules.
const NOTE: &str = "
// Generated from `docs/guide`, in the order of `docs/SUMMARY.md`, by `cargo xtask pages`.
";

/// Returns the files of the module, by path, from all pages of the repository.
pub(super) fn files(pages: &[Page]) -> Result<Vec<(String, String)>> {
    let summary = pages.iter().find(|page| page.path == SUMMARY);
    let summary = summary.with_context(|| format!("{SUMMARY} does not exist"))?;
    let (mut list, mut modules, mut files) = (String::new(), NOTE.to_owned(), Vec::new());
    for entry in summary::parse(&summary.text).0 {
        let Some(page) = pages.iter().find(|page| entry.path.as_ref() == Some(&page.path)) else { continue };
        let Some(name) = module(&page.path) else { continue };
        writeln!(list, "//! - [{}](crate::guide::{name})", entry.title)?;
        writeln!(modules, "#[doc = include_str!(\"{name}.md\")]\npub mod {name} {{}}")?;
        files.push((format!("{MODULE}{name}.md"), text(page)));
    }
    files.push((format!("{MODULE}mod.rs"), list + &modules));
    Ok(files)
}

/// Returns the text of a guide for rustdoc.
fn text(page: &Page) -> String {
    let note = format!("[The diagram]({REPOSITORY}{}) is on this page in the repository.", page.path);
    let text = without_diagrams(&page.text, &note);
    relinked(&page.path, &with_plain_fences(&text), |target| Some(link(target)))
}

/// Returns `text` with only the languages of code blocks. Rustdoc refuses other words, which are for scripts
/// that run the code of a page.
fn with_plain_fences(text: &str) -> String {
    let plain = |line: &str| match line.split_once(' ') {
        Some((language, _)) if line.starts_with("```") => format!("{language}\n"),
        _ => format!("{line}\n"),
    };
    text.lines().map(plain).collect()
}

/// Returns the link that rustdoc resolves to a page of the repository.
pub(super) fn link(target: &Target) -> String {
    match module(&target.path) {
        Some(name) => target.with_anchor(&format!("crate::guide::{name}")),
        None => target.in_repository(),
    }
}

/// Returns the name of a guide's module. None for a page that is no guide.
fn module(path: &str) -> Option<String> {
    Some(path.strip_prefix(GUIDES)?.strip_suffix(".md")?.replace('-', "_"))
}

/// Returns true if the documentation tests compile the code of the page at `path`.
pub(super) fn is_compiled(path: &str) -> bool {
    module(path).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_guide_is_a_module_in_the_order_of_the_book() {
        let pages = [
            ("docs/guide/b-c.md", "# B\n\n[a](a.md#x), [g](../g.md), ![p](../p.svg)\n\n```mermaid\nx\n```\n"),
            ("docs/guide/a.md", "# A\n\n```sh endless\nx y\n```\n"),
            ("docs/g.md", "# G\n"),
            (SUMMARY, "- [G](g.md)\n- [A](guide/a.md)\n- [Bees](guide/b-c.md)\n"),
        ];
        let pages = pages.map(|(path, text)| Page::new(path.into(), text.into()));
        let files = files(&pages).unwrap();
        let names: Vec<&str> = files.iter().map(|(path, _)| path.strip_prefix(MODULE).unwrap()).collect();
        assert_eq!(names, ["a.md", "b_c.md", "mod.rs"]);
        assert_eq!(files[0].1, "# A\n\n```sh\nx y\n```\n");
        assert!(files[1].1.starts_with("# B\n\n[a](crate::guide::a#x), [g](https://github.com/"));
        assert!(!files[1].1.contains("mermaid"), "{}", files[1].1);
        assert!(
            files[2].1.contains("//! - [A](crate::guide::a)\n//! - [Bees](crate::guide::b_c)\n"),
            "{}",
            files[2].1
        );
        assert!(files[2].1.contains("#[doc = include_str!(\"b_c.md\")]\npub mod b_c {}\n"));
    }
}
