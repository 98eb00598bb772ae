use super::imports::Names;
use super::source::Source;
use crate::sources::code;
use std::collections::{BTreeMap, BTreeSet};

/// Types whose own methods are in three files or more, each with how many.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Spread {
    /// Those in files that have nothing to do with each other.
    pub(super) wide: Vec<String>,
    /// Those that are in the file of the type and in the folder of the same name beside it.
    pub(super) own_folder: Vec<String>,
}

/// A type: its name, and the file that defines it where that is known.
type Type<'a> = (&'a str, Option<usize>);

impl Spread {
    pub(super) fn of(sources: &[Source]) -> Self {
        let names = Names::of(sources);
        let mut blocks: BTreeMap<Type<'_>, BTreeSet<usize>> = BTreeMap::new();
        for (file, source) in sources.iter().enumerate() {
            for (_, line) in code(&source.text) {
                if let Some(path) = inherent(line) {
                    let name = path.rsplit("::").next().unwrap_or(path);
                    blocks.entry((name, home(path, file, sources, &names))).or_default().insert(file);
                }
            }
        }
        let mut spread = Self::default();
        for ((name, home), files) in blocks.into_iter().filter(|(_, files)| files.len() > 2) {
            let is_own = home.is_some_and(|home| {
                let folder = own_folder(&sources[home].path, name);
                folder.is_some_and(|folder| {
                    files.iter().all(|file| *file == home || sources[*file].path.starts_with(&folder))
                })
            });
            let list = if is_own { &mut spread.own_folder } else { &mut spread.wide };
            list.push(format!("{name} ×{}", files.len()));
        }
        spread
    }
}

/// The file that defines the type which a block of methods in `file` is for: this one, the one that it has
/// the name from, or the only one of the crate with such a type.
fn home(path: &str, file: usize, sources: &[Source], names: &Names) -> Option<usize> {
    let name = path.rsplit("::").next().unwrap_or(path);
    let defines = |file: &usize| code(&sources[*file].text).any(|(_, line)| defined(line) == Some(name));
    if path == name && defines(&file) {
        return Some(file);
    }
    if let Some(home) = names.home(path, file) {
        return Some(home);
    }
    let mut homes = (0..sources.len()).filter(defines);
    homes.next().filter(|_| homes.next().is_none())
}

/// The folder of a type's own: `machine/` beside `machine.rs`, where the file is named after the type.
fn own_folder(home: &str, name: &str) -> Option<String> {
    let module = home.strip_suffix(".rs")?;
    let module = module.strip_suffix("/mod").unwrap_or(module);
    let file = module.rsplit('/').next()?.replace('_', "");
    file.eq_ignore_ascii_case(name).then(|| format!("{module}/"))
}

/// The path of the type that a block of methods is for.
fn inherent(line: &str) -> Option<&str> {
    let rest = line.strip_prefix("impl")?;
    if line.contains(" for ") {
        return None;
    }
    let rest = match rest.strip_prefix('<') {
        Some(rest) => rest.split_once("> ")?.1,
        None => rest.strip_prefix(' ')?,
    };
    let path = rest.split(|c: char| !c.is_alphanumeric() && c != '_' && c != ':').next()?;
    (!path.is_empty()).then_some(path)
}

/// The type that a line defines.
fn defined(line: &str) -> Option<&str> {
    let line = line.strip_prefix("pub").map_or(line, |rest| match rest.strip_prefix('(') {
        Some(scope) => scope.split_once(") ").map_or(rest, |(_, rest)| rest),
        None => rest.trim_start(),
    });
    let rest = ["struct ", "enum ", "union "].iter().find_map(|word| line.strip_prefix(word))?;
    rest.split(|c: char| !c.is_alphanumeric() && c != '_').next()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spread(sources: &[(&str, &str)]) -> Spread {
        let source =
            |(path, text): &(&str, &str)| Source { path: (*path).to_owned(), text: (*text).to_owned() };
        Spread::of(&sources.iter().map(source).collect::<Vec<_>>())
    }

    #[test]
    fn blocks_of_methods_name_their_type() {
        assert_eq!(inherent("impl Client {"), Some("Client"));
        assert_eq!(inherent("impl<T: Clone> Queue<T> {"), Some("Queue"));
        assert_eq!(inherent("impl super::Client {"), Some("super::Client"));
        assert_eq!(inherent("impl Drop for Client {"), None);
        assert_eq!(inherent("implement()"), None);
        assert_eq!(inherent("    impl Client {"), None);
    }

    #[test]
    fn two_types_of_one_name_are_not_added_together() {
        let found = spread(&[
            ("a/one.rs", "pub(crate) struct State;\nimpl State {}\n"),
            ("a/two.rs", "use super::one::State;\nimpl State {}\n"),
            ("b/one.rs", "struct State;\nimpl State {}\n"),
            ("b/two.rs", "impl super::one::State {}\n"),
        ]);
        assert_eq!(found, Spread::default());
    }

    #[test]
    fn a_type_is_followed_by_its_imports() {
        let found = spread(&[
            ("a/mod.rs", "mod one;\npub use one::State;\n"),
            ("a/one.rs", "pub struct State;\nimpl State {}\n"),
            ("b.rs", "use crate::a::State;\nimpl State {}\n"),
            ("c.rs", "use crate::a::*;\nimpl State {}\n"),
        ]);
        assert_eq!(found.wide, ["State ×3"]);
        assert_eq!(found.own_folder, [""; 0]);
    }

    #[test]
    fn a_folder_of_its_own_is_one_home() {
        let parts = [
            ("a/machine.rs", "pub struct Machine;\nimpl Machine {}\n"),
            ("a/machine/time.rs", "use super::Machine;\nimpl Machine {}\n"),
            ("a/machine/inbound.rs", "use super::Machine;\nimpl Machine {}\n"),
        ];
        assert_eq!(spread(&parts).own_folder, ["Machine ×3"]);
        let beside = ("a/other.rs", "use super::machine::Machine;\nimpl Machine {}\n");
        assert_eq!(spread(&[&parts[..], &[beside]].concat()).wide, ["Machine ×4"]);
    }
}
