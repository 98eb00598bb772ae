use super::circles::circles;
use super::imports::{Import, imports};
use super::lengths::functions;
use super::source::Source;
use super::spread::spread;

/// Figures of one crate.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Figures {
    files: Vec<usize>,
    functions: Vec<usize>,
    loose: usize,
    pub(super) circle: Vec<String>,
    over_folders: usize,
    spread: Vec<String>,
}

impl Figures {
    pub(super) fn of(sources: &[Source]) -> Self {
        let edges: Vec<Import> = imports(sources);
        let circles = circles(sources.len(), &edges);
        let names = |circle: &Vec<usize>| circle.iter().map(|file| sources[*file].path.clone()).collect();
        let crosses = |circle: &&Vec<usize>| {
            let mut folders: Vec<_> = circle.iter().map(|file| folder(&sources[*file].path)).collect();
            folders.dedup();
            folders.len() > 1
        };
        let largest = circles.iter().max_by_key(|circle| circle.len());
        let mut files: Vec<_> = sources.iter().map(|source| source.text.lines().count()).collect();
        let mut functions: Vec<_> = sources.iter().flat_map(|source| functions(&source.text)).collect();
        files.sort_unstable();
        functions.sort_unstable();
        Self {
            files,
            functions,
            loose: sources.iter().filter(|source| !source.path.contains('/')).count(),
            circle: largest.map(names).unwrap_or_default(),
            over_folders: circles.iter().filter(crosses).map(Vec::len).max().unwrap_or_default(),
            spread: spread(sources),
        }
    }
}

/// The folder at the root of `src` that a file is in; the file itself where it is in none.
fn folder(path: &str) -> &str {
    path.split('/').next().unwrap_or_default()
}

impl std::fmt::Display for Figures {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let at = |lengths: &[usize], percent: usize| {
            let last = lengths.len().saturating_sub(1);
            lengths.get(last * percent / 100).copied().unwrap_or_default()
        };
        let Self { files, functions, loose, circle, over_folders, spread } = self;
        let spread = if spread.is_empty() { "none".to_owned() } else { spread.join(", ") };
        write!(
            f,
            "{} | {}, {} | {} | {}, {} | {loose} | {} | {over_folders} | {spread}",
            files.len(),
            at(files, 50),
            at(files, 95),
            functions.len(),
            at(functions, 50),
            at(functions, 95),
            circle.len(),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_crate_is_measured() {
        let source = |path: &str, text: &str| Source { path: path.to_owned(), text: text.to_owned() };
        let sources = [
            source("a/mod.rs", "mod one;\npub use one::One;\n"),
            source(
                "a/one.rs",
                "use crate::b::Two;\n\npub struct One;\n\nimpl One {\n    fn f() {\n    }\n}\n",
            ),
            source("b.rs", "use crate::a::One;\n\npub struct Two;\n\nimpl One {}\n"),
            source("lib.rs", "mod a;\nmod b;\n\nimpl One {}\n"),
        ];
        let figures = Figures::of(&sources);
        assert_eq!(figures.circle, ["a/one.rs", "b.rs"]);
        assert_eq!((figures.over_folders, figures.loose), (2, 2));
        assert_eq!(figures.functions, [2]);
        assert_eq!(figures.spread, ["One ×3"]);
        assert_eq!(figures.to_string(), "4 | 4, 5 | 1 | 2, 2 | 2 | 2 | 2 | One ×3");
    }
}
