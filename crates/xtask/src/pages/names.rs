use super::markdown::{Page, prose};
use super::task::{files, read};
use anyhow::Result;
use std::collections::HashSet;
use std::path::Path;

/// Pages that say where things are by the names of types and functions.
const MAPS: [&str; 2] = ["docs/architecture.md", "docs/glossary.md"];

/// Words of the code of all crates, without its comments.
pub(super) fn of_sources(root: &Path) -> Result<HashSet<String>> {
    let mut words = HashSet::new();
    for path in files(root, "crates", ".rs")? {
        words.extend(of_code(&read(root, &path)?));
    }
    Ok(words)
}

fn of_code(text: &str) -> HashSet<String> {
    let code = text.lines().filter(|line| !line.trim_start().starts_with("//"));
    let words = code.flat_map(|line| line.split(|c: char| !c.is_alphanumeric() && c != '_'));
    words.map(str::to_owned).collect()
}

/// Names on the maps that no code has.
pub(super) fn check(pages: &[Page], known: &HashSet<String>) -> Vec<String> {
    let mut wrong = Vec::new();
    for page in pages.iter().filter(|page| MAPS.contains(&page.path.as_str())) {
        for (number, line) in prose(&page.text) {
            // Every second part stands between two of them.
            for name in line.split('`').skip(1).step_by(2).filter(|span| is_name(span)) {
                if !name.split("::").all(|part| known.contains(part)) {
                    wrong.push(format!("{}:{number}: no code has `{name}`", page.path));
                }
            }
        }
    }
    wrong
}

/// True for the name of a type, a variant, or one of its methods.
fn is_name(span: &str) -> bool {
    span.starts_with(|c: char| c.is_ascii_uppercase())
        && span.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | ':'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_no_code_has_are_told() {
        let known = of_code("// Gone\nstruct Lease;\nimpl Lease { fn end(&self) {} }\n");
        let text = "`Lease` and `Lease::end()`, `Lease::end`\n`Gone`, `session/machine`, `is_held()`\n";
        let page = Page::new(MAPS[0].to_owned(), text.to_owned());
        assert_eq!(check(&[page], &known), ["docs/architecture.md:2: no code has `Gone`"]);
        let elsewhere = Page::new("docs/proof.md".into(), "`Gone`\n".into());
        assert!(check(&[elsewhere], &known).is_empty());
    }
}
