//! The READMEs of published crates, which package registries show without rustdoc's links.

use super::markdown::{Page, prose};
use std::collections::BTreeSet;

/// Returns links and names in the README of a published crate that lead nowhere on a package registry.
/// `published` returns whether the crate in a folder is published.
pub(super) fn check(pages: &[Page], published: impl Fn(&str) -> bool) -> Vec<String> {
    let mut wrong = Vec::new();
    for page in pages {
        let Some(folder) = page.path.strip_suffix("/README.md") else { continue };
        if folder.starts_with("crates/") && !folder.contains("/src/") && published(folder) {
            wrong.extend(dead(page));
        }
    }
    wrong
}

fn dead(page: &Page) -> Vec<String> {
    let targets = page.targets().into_iter();
    let targets = targets.filter(|(_, target)| !target.contains("://") && !target.starts_with('#'));
    let mut wrong: Vec<String> =
        targets.map(|(line, target)| format!("{}:{line}: {target} is no URL", page.path)).collect();
    let (mut named, mut defined) = (BTreeSet::new(), BTreeSet::new());
    for (line, text) in prose(&page.text) {
        for (start, _) in text.match_indices("[`") {
            match text[start + 2..].split_once("`]") {
                Some((name, rest)) if text.starts_with("[`") && rest.starts_with(": http") => {
                    defined.insert(name);
                }
                Some((name, rest)) if !rest.starts_with(['(', '[']) => {
                    named.insert((name, line));
                }
                _ => {}
            }
        }
    }
    named.retain(|(name, _)| !defined.contains(name));
    wrong.extend(named.iter().map(|(name, line)| format!("{}:{line}: [`{name}`] has no URL", page.path)));
    wrong
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wrong(text: &str, published: bool) -> Vec<String> {
        check(&[Page::new("crates/a/README.md".into(), text.into())], |_| published)
    }

    #[test]
    fn every_link_and_name_of_a_published_readme_has_a_url() {
        let fine = "- [`A`]: an [`A`](https://b.org), `[c]`, [`d`][`A`].\n\n[`A`]: https://docs.rs/a\n";
        assert_eq!(wrong(fine, true), [""; 0]);
        let dead = "[`A`] and [b](A::b)\n";
        let expected = ["crates/a/README.md:1: A::b is no URL", "crates/a/README.md:1: [`A`] has no URL"];
        assert_eq!(wrong(dead, true), expected);
        assert_eq!(wrong(dead, false), [""; 0]);
    }
}
