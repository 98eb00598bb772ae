use super::guide;
use super::relink::{REPOSITORY, relinked, without_diagrams};

/// The facade's pages that are generated from the README: the page for package registries, and the page for
/// rustdoc.
pub(super) const PAGES: [&str; 2] = ["crates/docent/README.md", "crates/docent/src/front.md"];

/// Text appended to each of these pages. It is not rendered.
const NOTE: &str = "\n<!-- Generated from the README of the repository by `cargo xtask pages`. -->\n";

/// Section of the README that contains the diagram.
const DIAGRAM: &str = "README.md#which-recipe-do-i-need";

/// Header of the table column that names types, which are linked for rustdoc.
const TYPES: &str = "types";

/// Returns the pages that are generated from `readme`, by path. `names` is the part of rustdoc's page that
/// lists the modules.
pub(super) fn pages(readme: &str, names: &str) -> [(&'static str, String); 2] {
    let text = without_diagrams(readme, &format!("[A diagram]({REPOSITORY}{DIAGRAM}) shows the choices."));
    let [registry, rustdoc] = PAGES;
    let plain = relinked("README.md", &text, |target| Some(target.in_repository()));
    let linked =
        with_names(&with_items(&relinked("README.md", &text, |target| Some(guide::link(target)))), names);
    [(registry, plain + NOTE), (rustdoc, linked + NOTE)]
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
    fn names_are_listed_below_the_introduction() {
        assert_eq!(with_names("# A\n\na\n\n## B\n", "## N\n"), "# A\n\na\n\n## N\n\n## B\n");
    }

    #[test]
    fn types_are_linked_where_a_table_names_them() {
        let table = "| recipe | types |\n|---|---|\n| `x` | `Mutex`, `RwLock` |\n\n`Other`\n";
        let linked = "| recipe | types |\n|---|---|\n| `x` | [`Mutex`], [`RwLock`] |\n\n`Other`\n";
        assert_eq!(with_items(table), linked);
    }

    #[test]
    fn guides_are_modules_for_rustdoc_and_pages_of_the_repository_for_registries() {
        let [(_, registry), (_, rustdoc)] = pages("# A\n\n[q](docs/guide/from-x.md#b)\n\n## B\n", "");
        assert!(registry.contains(&format!("[q]({REPOSITORY}docs/guide/from-x.md#b)")), "{registry}");
        assert!(rustdoc.contains("[q](crate::guide::from_x#b)"), "{rustdoc}");
    }
}
