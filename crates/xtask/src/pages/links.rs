use super::markdown::Page;

/// Returns the links of `pages` to targets that do not exist. `exists` returns whether a path from the root
/// of the repository exists.
pub(super) fn check(pages: &[Page], exists: impl Fn(&str) -> bool) -> Vec<String> {
    let mut wrong = Vec::new();
    for page in pages {
        for (line, target) in page.targets().into_iter().filter(|(_, target)| is_relative(target)) {
            if !resolves(page, &target, pages, &exists) {
                wrong.push(format!("{}:{line}: the link target {target} does not exist", page.path));
            }
        }
    }
    wrong
}

/// Returns true for a link to a page of the repository. A name without a dot or slash is an item of rustdoc.
pub(super) fn is_relative(target: &str) -> bool {
    !target.contains("://") && !target.contains("::") && target.contains(['.', '/', '#'])
}

fn resolves(page: &Page, target: &str, pages: &[Page], exists: impl Fn(&str) -> bool) -> bool {
    let (file, anchor) = target.split_once('#').unwrap_or((target, ""));
    let Some(path) = (if file.is_empty() { Some(page.path.clone()) } else { join(&page.path, file) }) else {
        return false;
    };
    if !exists(&path) {
        return false;
    }
    let known = pages.iter().find(|page| page.path == path);
    anchor.is_empty() || known.is_none_or(|page| page.anchors().iter().any(|name| name == anchor))
}

/// Returns the path to which `relative` points on the page at `page`, unless it is outside of the repository.
pub(crate) fn join(page: &str, relative: &str) -> Option<String> {
    let mut parts: Vec<&str> = page.split('/').collect();
    parts.pop();
    for part in relative.split('/').filter(|part| !part.is_empty() && *part != ".") {
        match part {
            ".." => drop(parts.pop()?),
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wrong(text: &str) -> Vec<String> {
        let here = Page::new("docs/guide/a.md".into(), text.into());
        let there = Page::new("docs/b.md".into(), "# B\n\n## Its part\n".into());
        check(&[here, there], |path| ["docs/guide/a.md", "docs/b.md", "docs/c.svg"].contains(&path))
    }

    #[test]
    fn links_to_pages_parts_and_pictures_resolve() {
        assert!(wrong("[b](../b.md), [part](../b.md#its-part), ![c](../c.svg)\n").is_empty());
        assert!(
            wrong("# Here\n[here](#here), [out](https://example.org/x), [item](crate::Mutex)\n").is_empty()
        );
    }

    #[test]
    fn a_missing_target_is_reported_with_its_place() {
        assert_eq!(wrong("x\n[d](../d.md)\n"), ["docs/guide/a.md:2: the link target ../d.md does not exist"]);
        assert_eq!(wrong("[b](../b.md#gone)\n").len(), 1);
        assert_eq!(wrong("[up](../../../b.md)\n").len(), 1);
    }
}
