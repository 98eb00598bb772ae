use super::circles::circles;
use super::imports::{Import, imports};
use super::lengths::functions;
use super::source::Source;
use super::spread::Spread;
use std::fmt;

/// Figures of one crate.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Figures {
    files: Vec<usize>,
    functions: Vec<usize>,
    loose: usize,
    pub(super) circle: Vec<String>,
    /// Number of circles that cross folders.
    crossing: usize,
    /// Files of the largest one of those.
    over_folders: usize,
    pub(super) spread: Spread,
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
        let crossing: Vec<_> = circles.iter().filter(crosses).map(Vec::len).collect();
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
            crossing: crossing.len(),
            over_folders: crossing.into_iter().max().unwrap_or_default(),
            spread: Spread::of(sources),
        }
    }
}

/// The folder at the root of `src` that a file is in; the file itself where it is in none.
fn folder(path: &str) -> &str {
    path.split('/').next().unwrap_or_default()
}

/// Lengths of the files and functions of several crates together.
#[derive(Debug, Default)]
pub(super) struct Totals {
    files: Vec<usize>,
    functions: Vec<usize>,
}

impl Totals {
    pub(super) fn add(&mut self, figures: &Figures) {
        self.files.extend(&figures.files);
        self.functions.extend(&figures.functions);
        self.files.sort_unstable();
        self.functions.sort_unstable();
    }
}

/// How many lengths there are, their median, and the one that 95 of 100 do not exceed.
fn lengths(sorted: &[usize]) -> String {
    let last = sorted.len().saturating_sub(1);
    let at = |percent: usize| sorted.get(last * percent / 100).copied().unwrap_or_default();
    format!("{} | {}, {}", sorted.len(), at(50), at(95))
}

impl fmt::Display for Totals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} | {}", lengths(&self.files), lengths(&self.functions))
    }
}

impl fmt::Display for Figures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { files, functions, loose, circle, crossing, over_folders, spread } = self;
        let (files, functions, circle) = (lengths(files), lengths(functions), circle.len());
        let wide = if spread.wide.is_empty() { "none".to_owned() } else { spread.wide.join(", ") };
        write!(f, "{files} | {functions} | {loose} | {circle} | {crossing}, {over_folders} | {wide}")
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
        assert_eq!((figures.crossing, figures.over_folders, figures.loose), (1, 2, 2));
        assert_eq!(figures.functions, [2]);
        assert_eq!(figures.spread.wide, ["One ×3"]);
        assert_eq!(figures.to_string(), "4 | 4, 5 | 1 | 2, 2 | 2 | 2 | 1, 2 | One ×3");
        let mut totals = Totals::default();
        totals.add(&figures);
        totals.add(&figures);
        assert_eq!(totals.to_string(), "8 | 4, 8 | 2 | 2, 2");
    }
}
