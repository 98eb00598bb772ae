use super::source::Source;
use crate::sources::code;
use std::collections::BTreeMap;

/// One file names something of another one. Both are places in the list of files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Import {
    pub(super) from: usize,
    pub(super) to: usize,
}

/// A path of modules and perhaps an item, from the root of the crate.
type Path = Vec<String>;

/// How often a name may be passed on from one table of contents to the next.
const MOST_STEPS: usize = 8;

/// The names that the files of a crate have from each other.
#[derive(Debug)]
pub(super) struct Names {
    modules: BTreeMap<Path, usize>,
    /// The module of each file, and the paths that it names.
    files: Vec<(Path, Vec<Path>)>,
}

impl Names {
    pub(super) fn of(sources: &[Source]) -> Self {
        let module_of = |source: &Source| module(&source.path);
        let modules = sources.iter().enumerate().map(|(place, source)| (module_of(source), place)).collect();
        let named = |source: &Source| (module_of(source), named(&source.text, &module_of(source)));
        Self { modules, files: sources.iter().map(named).collect() }
    }

    /// The file that has what `file` names as `path`: by one of its imports, or by the path itself.
    pub(super) fn home(&self, path: &str, file: usize) -> Option<usize> {
        let (module, named) = &self.files[file];
        if path.contains("::") {
            let path: Path = path.split("::").map(str::to_owned).collect();
            return self.resolve(&absolute(&path, module), MOST_STEPS);
        }
        let import = named.iter().find(|other| other.last().is_some_and(|last| last == path))?;
        self.resolve(import, MOST_STEPS)
    }

    /// The file that has what `path` names.
    fn resolve(&self, path: &[String], steps: usize) -> Option<usize> {
        let known = (0..=path.len()).rev().find(|length| self.modules.contains_key(&path[..*length]))?;
        let file = self.modules[&path[..known]];
        let Some(item) = path.get(known) else { return Some(file) };
        // A name that the module has from elsewhere.
        let (_, named) = &self.files[file];
        let passed_on = named.iter().find(|other| other.last() == Some(item) && other.as_slice() != path);
        match passed_on {
            Some(other) if steps > 0 => self.resolve(other, steps - 1),
            _ => Some(file),
        }
    }
}

/// Imports between the files of a crate. Whatever a table of contents passes on counts as an import of the
/// file that has it, and the table itself imports nothing.
pub(super) fn imports(sources: &[Source]) -> Vec<Import> {
    let names = Names::of(sources);
    let mut imports = Vec::new();
    for from in (0..sources.len()).filter(|from| !is_table(&sources[*from].path)) {
        for path in &names.files[from].1 {
            let to = names.resolve(path, MOST_STEPS);
            imports.extend(
                to.filter(|to| *to != from && !is_table(&sources[*to].path)).map(|to| Import { from, to }),
            );
        }
    }
    imports.sort_unstable();
    imports.dedup();
    imports
}

fn is_table(path: &str) -> bool {
    path == "lib.rs" || path == "mod.rs" || path.ends_with("/mod.rs")
}

/// The module that a file is.
fn module(path: &str) -> Path {
    let path = path.strip_suffix(".rs").unwrap_or(path);
    let path = path.strip_suffix("/mod").unwrap_or(path);
    match path {
        "lib" | "main" | "mod" => Vec::new(),
        path => path.split('/').map(str::to_owned).collect(),
    }
}

/// The paths that a file names, from the root of the crate.
fn named(text: &str, module: &[String]) -> Vec<Path> {
    let lines: Vec<&str> = code(text).map(|(_, line)| line).collect();
    let mut found = Vec::new();
    let mut others = String::new();
    let text = lines.join("\n");
    for statement in text.split_inclusive(';') {
        let trimmed = statement.trim_end_matches([';', '\n']);
        match statement.rfind("use ").filter(|place| is_import(&statement[..*place])) {
            Some(place) => expand(&trimmed[place + "use ".len()..], &[], &mut found),
            None => others.push_str(statement),
        }
    }
    for word in ["crate::", "super::"] {
        for (place, _) in others.match_indices(word) {
            if !others[..place].ends_with(|c: char| c.is_alphanumeric() || c == '_' || c == ':') {
                let end = others[place..].find(|c: char| !c.is_alphanumeric() && c != '_' && c != ':');
                let path = &others[place..place + end.unwrap_or(others.len() - place)];
                expand(path.trim_end_matches(':'), &[], &mut found);
            }
        }
    }
    found.into_iter().map(|path| absolute(&path, module)).collect()
}

/// Whether an import begins behind this: at the begin of a line, perhaps with its visibility.
fn is_import(before: &str) -> bool {
    let line = before.rsplit('\n').next().unwrap_or_default().trim();
    line.is_empty() || line.starts_with("pub")
}

/// Adds all paths of a tree of imports.
fn expand(tree: &str, prefix: &[String], found: &mut Vec<Path>) {
    let tree = tree.trim();
    let (head, group) = match tree.split_once('{') {
        Some((head, group)) => (head, Some(group.trim_end().trim_end_matches('}'))),
        None => (tree.split(" as ").next().unwrap_or(tree), None),
    };
    let names = head.split("::").map(str::trim).filter(|name| !name.is_empty() && *name != "*");
    let mut path = prefix.to_vec();
    path.extend(names.filter(|name| *name != "self" || prefix.is_empty()).map(str::to_owned));
    let Some(group) = group else {
        found.push(path);
        return;
    };
    let (mut depth, mut begin) = (0, 0);
    for (place, c) in group.char_indices() {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                expand(&group[begin..place], &path, found);
                begin = place + 1;
            }
            _ => {}
        }
    }
    // With a comma behind the last one there is nothing more.
    if !group[begin..].trim().is_empty() {
        expand(&group[begin..], &path, found);
    }
}

/// The path from the root of the crate, of one that is named in `module`.
fn absolute(path: &[String], module: &[String]) -> Path {
    let mut absolute = module.to_vec();
    for (place, name) in path.iter().enumerate() {
        match name.as_str() {
            "crate" => absolute.clear(),
            "self" if place == 0 => {}
            "super" => drop(absolute.pop()),
            name => absolute.push(name.to_owned()),
        }
    }
    absolute
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(text: &str) -> Vec<String> {
        let module = ["a".to_owned(), "b".to_owned()];
        named(text, &module).into_iter().map(|path| path.join("::")).collect()
    }

    #[test]
    fn trees_of_imports_are_expanded() {
        assert_eq!(paths("use crate::x::{self, Y, z::{U, V as W}};"), ["x", "x::Y", "x::z::U", "x::z::V"]);
        assert_eq!(paths("use super::{One, two::Two};"), ["a::One", "a::two::Two"]);
        assert_eq!(paths("use super::super::One;"), ["One"]);
        assert_eq!(paths("pub(crate) use child::One;"), ["a::b::child::One"]);
        assert_eq!(paths("fn f() {\n    crate::x::y();\n}"), ["x::y"]);
    }

    #[test]
    fn names_are_followed_through_tables_of_contents() {
        let source = |path: &str, text: &str| Source { path: path.to_owned(), text: text.to_owned() };
        let sources = [
            source("a/mod.rs", "mod one;\npub use one::One;"),
            source("a/one.rs", "struct One;"),
            source("b.rs", "use crate::a::One;"),
        ];
        assert_eq!(imports(&sources), [Import { from: 2, to: 1 }]);
    }
}
