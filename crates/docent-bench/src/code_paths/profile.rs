//! Parses the output of callgrind.

use std::collections::{BTreeMap, BTreeSet, HashMap};

/// The functions of the workspace that ran in a program, by source file.
#[derive(Debug, Default)]
pub(super) struct Profile {
    files: BTreeMap<String, BTreeSet<String>>,
}

impl Profile {
    /// Parses a profile in callgrind's format: `fl=`, `fi=` and `fe=` name the file of the following lines,
    /// `fn=` the function. A name is given once, as `(number) name`, and later as `(number)`.
    pub(super) fn parse(text: &str) -> Self {
        let (mut file_names, mut function_names) = (HashMap::new(), HashMap::new());
        let mut file = String::new();
        let mut profile = Self::default();
        for line in text.lines() {
            if let Some(name) = ["fl=", "fi=", "fe="].iter().find_map(|key| line.strip_prefix(key)) {
                file = named(&mut file_names, name);
            } else if let Some(name) = line.strip_prefix("cfi=").or_else(|| line.strip_prefix("cfl=")) {
                named(&mut file_names, name);
            } else if let Some(name) = line.strip_prefix("fn=") {
                let function = named(&mut function_names, name);
                if let Some(path) = of_workspace(&file) {
                    profile.files.entry(path.to_owned()).or_default().insert(function);
                }
            } else if let Some(name) = line.strip_prefix("cfn=") {
                named(&mut function_names, name);
            }
        }
        profile
    }

    /// Number of source files with a function that ran.
    pub(super) fn files(&self) -> usize {
        self.files.len()
    }

    /// Number of functions that ran. Each closure and each instance of a generic function counts as one.
    pub(super) fn functions(&self) -> usize {
        self.files.values().map(BTreeSet::len).sum()
    }

    /// The source files with their functions, sorted.
    pub(super) fn executed(&self) -> impl Iterator<Item = (&str, &BTreeSet<String>)> {
        self.files.iter().map(|(path, functions)| (path.as_str(), functions))
    }
}

/// Returns the name that `text` defines or refers to.
fn named(names: &mut HashMap<String, String>, text: &str) -> String {
    match text.split_once(") ") {
        Some((number, name)) => {
            names.insert(number.to_owned(), name.to_owned());
            name.to_owned()
        }
        None => names.get(text.trim_end_matches(')')).cloned().unwrap_or_default(),
    }
}

/// Returns the path of a product's source file from the root of the workspace, or `None` for files of other
/// packages.
fn of_workspace(file: &str) -> Option<&str> {
    let start = file.find("crates/docent")?;
    let path = &file[start..];
    (path.contains("/src/") && !path.starts_with("crates/docent-bench/")).then_some(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_are_counted_in_the_file_that_they_are_defined_in() {
        let text = "events: Ir\n\
            fl=(1) /somewhere/crates/docent-core/src/line/line.rs\n\
            fn=(7) docent_core::line::line::Line::acquire\n\
            12 3\n\
            cfi=(2) /somewhere/crates/docent-core/src/line/draw.rs\n\
            cfn=(8) docent_core::line::draw::draw\n\
            calls=1 20\n\
            13 40\n\
            fl=(2)\n\
            fn=(8)\n\
            20 40\n\
            fl=(3) /registry/tokio-1.49/src/task.rs\n\
            fn=(9) tokio::task::spawn\n\
            1 1\n\
            fl=(4) /somewhere/crates/docent-bench/src/code_paths/worker.rs\n\
            fn=(10) docent_bench::code_paths::worker::measured_operation\n\
            1 1\n";
        let profile = Profile::parse(text);
        let paths = ["crates/docent-core/src/line/draw.rs", "crates/docent-core/src/line/line.rs"];
        assert_eq!(profile.executed().map(|(path, _)| path).collect::<Vec<_>>(), paths);
        assert_eq!((profile.files(), profile.functions()), (2, 2));
    }
}
