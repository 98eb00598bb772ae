//! The links of rendered pages.

use crate::cargo::{root, target};
use crate::pages::{REPOSITORY, join};
use crate::sources::files;
use anyhow::{Context, Result, ensure};
use regex::Regex;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// A rendered page.
#[derive(Debug, Default)]
struct Rendered {
    links: Vec<String>,
    /// Names that links to a part of the page may have behind `#`.
    anchors: BTreeSet<String>,
}

/// Fails with one line for each dead link of the book in this folder. Returns the number of links.
///
/// mdBook's page for missing pages is skipped: its links start at the root of the site.
pub(super) fn check_book(folder: &Path) -> Result<usize> {
    check(folder, &|path| path != "404.html")
}

/// Does the same for the first pages of all crates and for the guides, which rustdoc has rendered.
pub(crate) fn check_docs() -> Result<()> {
    let first = |path: &str| {
        path.starts_with("docent") && path.ends_with("/index.html") && path.matches('/').count() == 1
    };
    let checked = |path: &str| first(path) || path.starts_with("docent/guide/");
    let links = check(&target().join("doc"), &checked)?;
    println!("{links} links of the crates' first pages and of the guides work");
    Ok(())
}

fn check(folder: &Path, checked: &dyn Fn(&str) -> bool) -> Result<usize> {
    let (mut site, mut wrong, mut links) = (Site::new(folder)?, Vec::new(), 0);
    let paths = files(folder, "", ".html")?;
    for path in paths.iter().filter(|path| checked(path)) {
        let targets: BTreeSet<String> = site.page(path)?.links.iter().cloned().collect();
        links += targets.len();
        for target in targets {
            if !site.resolves(path, &target)? {
                wrong.push(format!("{path}: the link target {target} does not exist"));
            }
        }
    }
    ensure!(links > 0, "no page in {}", folder.display());
    ensure!(wrong.is_empty(), "{}", wrong.join("\n"));
    Ok(links)
}

/// A folder of rendered pages.
#[derive(Debug)]
struct Site<'a> {
    folder: &'a Path,
    link: Regex,
    anchor: Regex,
    read: BTreeMap<String, Rendered>,
}

impl<'a> Site<'a> {
    fn new(folder: &'a Path) -> Result<Self> {
        let link = Regex::new(r#"\s(?:href|src)="([^"]*)""#)?;
        let anchor = Regex::new(r#"\s(?:id|name)="([^"]*)""#)?;
        Ok(Self { folder, link, anchor, read: BTreeMap::new() })
    }

    fn page(&mut self, path: &str) -> Result<&Rendered> {
        if !self.read.contains_key(path) {
            let text = fs::read_to_string(self.folder.join(path)).with_context(|| path.to_owned())?;
            let all = |regex: &Regex| -> Vec<String> {
                regex.captures_iter(&text).map(|found| decoded(&found[1])).collect()
            };
            let page = Rendered { links: all(&self.link), anchors: all(&self.anchor).into_iter().collect() };
            self.read.insert(path.to_owned(), page);
        }
        Ok(&self.read[path])
    }

    /// Returns the page of this site that docs.rs shows at `target`. None if it is of no crate of this site.
    fn own_docs(&self, target: &str) -> Option<String> {
        let (_, path) = target.strip_prefix("https://docs.rs/")?.split_once("/latest/")?;
        let name = path.split('/').next()?;
        let end = if path.ends_with('/') { "index.html" } else { "" };
        self.folder.join(name).is_dir().then(|| format!("{path}{end}"))
    }

    fn resolves(&mut self, page: &str, target: &str) -> Result<bool> {
        if let Some(path) = target.strip_prefix(REPOSITORY) {
            return Ok(root().join(path.split('#').next().unwrap_or_default()).exists());
        }
        if let Some(path) = self.own_docs(target) {
            return self.resolves("", &path);
        }
        if target.contains("://") || target.starts_with("data:") || target.starts_with("javascript:") {
            return Ok(true);
        }
        let (file, anchor) = target.split_once('#').unwrap_or((target, ""));
        let file = file.split('?').next().unwrap_or_default();
        let Some(path) = (if file.is_empty() { Some(page.to_owned()) } else { join(page, file) }) else {
            return Ok(false);
        };
        if !self.folder.join(&path).is_file() {
            return Ok(false);
        }
        // The lines of a source file are anchors that a script adds.
        let named = !anchor.is_empty() && path.ends_with(".html") && !path.starts_with("src/");
        Ok(!named || self.page(&path)?.anchors.contains(anchor))
    }
}

/// Returns the value of an attribute without escapes.
fn decoded(value: &str) -> String {
    let value =
        value.replace("&amp;", "&").replace("&quot;", "\"").replace("&#39;", "'").replace("&#x27;", "'");
    let mut bytes = Vec::new();
    let mut rest = value.as_bytes();
    while let [first, more @ ..] = rest {
        let code = more.get(..2).and_then(|hex| std::str::from_utf8(hex).ok());
        match code.and_then(|hex| u8::from_str_radix(hex, 16).ok()).filter(|_| *first == b'%') {
            Some(byte) => (bytes.push(byte), rest = &more[2..]).1,
            None => (bytes.push(*first), rest = more).1,
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_pages(pages: &[(&str, &str)]) -> String {
        let folder = target().join(format!("tests-of-links-{}", std::process::id()));
        fs::create_dir_all(folder.join("b")).unwrap();
        for (path, text) in pages {
            fs::write(folder.join(path), text).unwrap();
        }
        let checked =
            check(&folder, &|_| true).map_or_else(|error| error.to_string(), |links| links.to_string());
        fs::remove_dir_all(folder).unwrap();
        checked
    }

    #[test]
    fn links_of_rendered_pages_are_checked_with_their_anchors() {
        let other = ("b/c.html", "<h1 id=\"d's\"></h1>");
        let fine = "<a href=\"b/c.html#d%27s\"> <a href=\"https://example.org\"> <a id=\"x\" href=\"#x\">";
        assert_eq!(check_pages(&[("a.html", fine), other]), "3");
        let dead = "<a href=\"b/c.html#e\"> <img src=\"d.svg\">";
        let wrong = "a.html: the link target b/c.html#e does not exist\n\
                     a.html: the link target d.svg does not exist";
        assert_eq!(check_pages(&[("a.html", dead), other]), wrong);
        let docs =
            "<a href=\"https://docs.rs/x/latest/b/c.html#e\"> <a href=\"https://docs.rs/x/latest/d/\">";
        let wrong = "a.html: the link target https://docs.rs/x/latest/b/c.html#e does not exist";
        assert_eq!(check_pages(&[("a.html", docs), other]), wrong);
        let repository = format!("<a href=\"{REPOSITORY}README.md\"> <a href=\"{REPOSITORY}none.md\">");
        let wrong = format!("a.html: the link target {REPOSITORY}none.md does not exist");
        assert_eq!(check_pages(&[("a.html", &repository)]), wrong);
    }
}
