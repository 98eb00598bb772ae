use super::{html, tools};
use crate::cargo::{root, run as execute, target};
use crate::pages;
use crate::sources::files;
use anyhow::{Context, Result, bail, ensure};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Folder of the book's pages.
const PAGES: &str = "docs";

/// Settings of mdBook beside the pages, and their line that begins those of the HTML.
const SETTINGS: &str = "book.toml";
const HTML: &str = "[output.html]\n";

/// Script that draws the diagrams of a page.
const DIAGRAMS: &str = include_str!("diagrams.js");

/// Renders the book into `book` of the build folder, and checks all links of the result. `--open` opens it.
pub(crate) fn run(arguments: &[String]) -> Result<()> {
    let open = match arguments {
        [] => false,
        [option] if option == "--open" => true,
        _ => bail!("usage: cargo xtask book [--open]"),
    };
    let (mdbook, source, book) =
        (tools::MDBOOK.ensure()?, target().join("book-source"), target().join("book"));
    let script = tools::mermaid()?;
    stage(&source, script.as_deref())?;
    let mut command = Command::new(mdbook);
    command.arg("build").arg(&source).arg("--dest-dir").arg(&book);
    execute(&mut command)?;
    let links = html::check_book(&book)?;
    let index = book.join("index.html");
    println!("{links} links work; the book is {}", index.display());
    if open { show(&index) } else { Ok(()) }
}

/// Copies the pages to `source`, with links out of the book as links to the repository, and the script that
/// draws diagrams.
fn stage(source: &Path, script: Option<&Path>) -> Result<()> {
    if source.is_dir() {
        fs::remove_dir_all(source)?;
    }
    let root = root();
    for path in files(&root, PAGES, "")? {
        let to = staged(source, &path)?;
        if path.ends_with(".md") {
            let text = fs::read_to_string(root.join(&path)).with_context(|| format!("cannot read {path}"))?;
            fs::write(&to, pages::for_book(&root, &path, &text))?;
        } else {
            fs::copy(root.join(&path), &to).with_context(|| format!("cannot copy {path}"))?;
        }
    }
    if let Some(script) = script {
        fs::copy(script, source.join("mermaid.min.js"))?;
        fs::write(source.join("diagrams.js"), DIAGRAMS)?;
        let settings = fs::read_to_string(source.join(SETTINGS))?;
        ensure!(settings.contains(HTML), "{PAGES}/{SETTINGS} has no line {HTML}");
        let with_script = settings.replace(HTML, &format!("{HTML}additional-js = [\"diagrams.js\"]\n"));
        fs::write(source.join(SETTINGS), with_script)?;
    }
    Ok(())
}

/// Returns the place of the page at `path` below `source`, whose folder exists.
fn staged(source: &Path, path: &str) -> Result<PathBuf> {
    let to = source.join(Path::new(path).strip_prefix(PAGES)?);
    if let Some(folder) = to.parent() {
        fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
    }
    Ok(to)
}

fn show(index: &Path) -> Result<()> {
    let program = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };
    execute(Command::new(program).arg(index))
}
