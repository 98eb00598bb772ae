use super::lengths::function_name;
use crate::cargo::root;
use crate::sources::code;
use anyhow::{Context, Result, bail};
use std::fmt;
use std::fs;
use std::path::Path;

/// Page with the table, from the root of the repository.
const PAGE: &str = "docs/architecture.md";

/// Heading that the table follows.
const HEADING: &str = "## One acquire, file by file";

/// Names that the path begins and ends with.
const ENDS: [&str; 2] = ["Mutex::acquire", "MutexGuard::new"];

/// Number of files that the path has to stay below.
const GOAL: usize = 30;

/// Row of the table: a step of an acquire, with the file and the name to read it at.
#[derive(Debug, PartialEq, Eq)]
struct Step {
    line: usize,
    file: String,
    /// A type, a function, a method as `Type::method`, or a macro as `name!`.
    name: String,
}

/// Files that are read to follow one uncontended acquire to the wire and back, as the table has them.
#[derive(Debug)]
pub(super) struct AcquirePath {
    steps: Vec<Step>,
}

impl AcquirePath {
    /// Reads the table of the repository at `root`; `None` where its page has no such table.
    pub(super) fn read(root: &Path) -> Result<Option<Self>> {
        let page = fs::read_to_string(root.join(PAGE)).with_context(|| PAGE)?;
        let steps = steps(&page);
        Ok((!steps.is_empty()).then_some(Self { steps }))
    }

    /// The files, each once, in the order in which they are first read.
    fn files(&self) -> Vec<&str> {
        let mut files: Vec<&str> = Vec::new();
        for step in &self.steps {
            if !files.contains(&step.file.as_str()) {
                files.push(&step.file);
            }
        }
        files
    }

    /// Fails where the table names something that does not exist below `root`, or the path is too long.
    pub(super) fn check(&self, root: &Path) -> Result<()> {
        let mut wrong = faults(&self.steps, &|file| fs::read_to_string(root.join(file)).ok());
        let length = self.files().len();
        wrong.extend(too_long(length));
        wrong.extend(cut_short(&self.steps));
        if !wrong.is_empty() {
            bail!("{}", wrong.join("\n"));
        }
        Ok(())
    }
}

impl fmt::Display for AcquirePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let files = self.files();
        write!(f, "files crossed by an uncontended acquire: {}", files.len())?;
        files.iter().try_for_each(|file| write!(f, "\n  {file}"))
    }
}

/// Checks the table of files that an acquire crosses.
pub(crate) fn check() -> Result<()> {
    let root = root();
    let path = AcquirePath::read(&root)?.with_context(|| format!("{PAGE}: no table follows {HEADING:?}"))?;
    path.check(&root)
}

/// A path that does not lead from the call to the guard.
fn cut_short(steps: &[Step]) -> Option<String> {
    let ends = [steps.first(), steps.last()].map(|step| step.map_or("", |step| step.name.as_str()));
    (ends != ENDS).then(|| format!("{PAGE}: the table leads from {} to {}, not {ENDS:?}", ends[0], ends[1]))
}

fn too_long(length: usize) -> Option<String> {
    (length >= GOAL).then(|| {
        format!("{PAGE}: an uncontended acquire crosses {length} files; it must be fewer than {GOAL}")
    })
}

/// The rows of the table below its heading.
fn steps(page: &str) -> Vec<Step> {
    let lines = page.lines().enumerate().skip_while(|(_, line)| *line != HEADING).skip(1);
    let section = lines.take_while(|(_, line)| !line.starts_with("## "));
    let rows = section.filter(|(_, line)| line.starts_with('|')).skip(2);
    let step = |(index, row): (usize, &str)| {
        let mut cells = row.trim_matches('|').split('|').map(|cell| cell.trim().trim_matches('`').to_owned());
        let mut cell = || cells.next().unwrap_or_default();
        let (_, file, name) = (cell(), cell(), cell());
        Step { line: index + 1, file, name }
    };
    rows.map(step).collect()
}

/// Rows whose file or name does not exist, and those that no earlier row leads to.
fn faults(steps: &[Step], text: &dyn Fn(&str) -> Option<String>) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut read: Vec<(&str, String)> = Vec::new();
    for Step { line, file, name } in steps {
        let Some(text) = text(file) else {
            wrong.push(format!("{PAGE}:{line}: there is no file {file}"));
            continue;
        };
        if !defines(&text, name) {
            wrong.push(format!("{PAGE}:{line}: {file} does not define {name}"));
        }
        let is_first = read.is_empty();
        let known = read.iter().any(|(earlier, _)| earlier == file);
        if !is_first && !known && !read.iter().any(|(_, text)| mentions(text, name)) {
            wrong.push(format!("{PAGE}:{line}: no file of an earlier step mentions {name}"));
        }
        if !known {
            read.push((file, text));
        }
    }
    wrong
}

/// Whether a file defines a type, a function, a macro (`name!`), or a method of a type (`Type::method`).
fn defines(text: &str, name: &str) -> bool {
    let has = |fits: &dyn Fn(&str) -> bool| code(text).any(|(_, line)| fits(line));
    if let Some((of, method)) = name.split_once("::") {
        let is_block = |line: &str| {
            let block = ["impl", "trait ", "pub trait ", "pub(crate) trait "];
            block.iter().any(|word| line.starts_with(word)) && words(line).any(|word| word == of)
        };
        return has(&is_block) && has(&|line| function_name(line) == Some(method));
    }
    if let Some(name) = name.strip_suffix('!') {
        return has(&|line| line.trim_start() == format!("macro_rules! {name} {{"));
    }
    let is_type = |line: &str| {
        let mut words = words(line).skip_while(|word| ["pub", "crate", "super", "in", "self"].contains(word));
        matches!(words.next(), Some("struct" | "enum" | "trait" | "type")) && words.next() == Some(name)
    };
    has(&is_type) || has(&|line| function_name(line) == Some(name))
}

/// Whether a file calls a function, or has a type's name in its code.
fn mentions(text: &str, name: &str) -> bool {
    let last = name.rsplit("::").next().unwrap_or(name);
    let is_type = last.starts_with(char::is_uppercase);
    code(text).filter(|(_, line)| function_name(line) != Some(last)).any(|(_, line)| {
        line.match_indices(last).any(|(place, _)| {
            let (before, after) = (&line[..place], &line[place + last.len()..]);
            let begins = !before.ends_with(is_word);
            begins && if is_type { !after.starts_with(is_word) } else { is_call(before, after) }
        })
    })
}

/// A function is called by its name, or handed on by its path.
fn is_call(before: &str, after: &str) -> bool {
    after.starts_with('(')
        || after.starts_with("::<")
        || before.ends_with("::") && !after.starts_with(is_word)
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

fn words(line: &str) -> impl Iterator<Item = &str> {
    line.split(|c: char| !is_word(c)).filter(|word| !word.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "# Page\n\n## One acquire, file by file\n\nText.\n\n| step | file | function or type |\n|---|---|---|\n\
        | asks | `a.rs` | `A::ask` |\n| tells | `b.rs` | `tell` |\n| asks again | `a.rs` | `A` |\n\n## Next\n\n| x | `c.rs` | `C` |\n";

    fn text(file: &str) -> Option<String> {
        let text = match file {
            "a.rs" => {
                "pub(crate) struct A;\n\nimpl A {\n    pub fn ask(&self) {\n        tell();\n    }\n}\n"
            }
            "b.rs" => "pub(super) async fn tell() {}\n",
            "c.rs" => "// ask() and tell()\nenum C {}\nfn other() {}\n",
            _ => return None,
        };
        Some(text.to_owned())
    }

    fn faults_of(rows: &[(&str, &str)]) -> Vec<String> {
        let step = |(file, name): &(&str, &str)| Step { line: 1, file: (*file).into(), name: (*name).into() };
        faults(&rows.iter().map(step).collect::<Vec<_>>(), &text)
    }

    #[test]
    fn the_table_is_the_one_below_its_heading_and_no_file_counts_twice() {
        let steps = steps(TABLE);
        assert_eq!(steps.len(), 3);
        assert_eq!(steps[1], Step { line: 10, file: "b.rs".into(), name: "tell".into() });
        assert_eq!(faults(&steps, &text), [""; 0]);
        assert_eq!(AcquirePath { steps }.files(), ["a.rs", "b.rs"]);
    }

    #[test]
    fn a_row_names_what_exists_and_what_an_earlier_one_leads_to() {
        assert_eq!(faults_of(&[("x.rs", "A")]), ["docs/architecture.md:1: there is no file x.rs"]);
        assert_eq!(faults_of(&[("a.rs", "B::ask")]), ["docs/architecture.md:1: a.rs does not define B::ask"]);
        assert_eq!(faults_of(&[("b.rs", "ask")]), ["docs/architecture.md:1: b.rs does not define ask"]);
        assert_eq!(
            faults_of(&[("a.rs", "A"), ("c.rs", "other")]),
            ["docs/architecture.md:1: no file of an earlier step mentions other"]
        );
        assert_eq!(faults_of(&[("b.rs", "tell"), ("a.rs", "A::ask")]).len(), 1);
    }

    #[test]
    fn a_name_is_mentioned_by_a_call_and_not_by_its_own_definition() {
        assert!(mentions("    let x = machine.write(now);", "Machine::write"));
        assert!(mentions("    self.change(Machine::drain);", "Machine::drain"));
        assert!(mentions("use super::machine::Machine;", "Machine"));
        assert!(!mentions("    fn write(&self) {", "Machine::write"));
        assert!(!mentions("    self.rewrite(now); self.write;", "Machine::write"));
        assert!(!mentions("use super::MachineRoom;", "Machine"));
    }

    #[test]
    fn the_path_leads_from_the_call_to_the_guard() {
        let [call, guard] = ENDS.map(|name| Step { line: 1, file: "a.rs".to_owned(), name: name.to_owned() });
        assert!(cut_short(&steps(TABLE)).is_some());
        assert_eq!(cut_short(&[call, guard]), None);
    }

    #[test]
    fn the_path_may_not_grow() {
        assert_eq!(too_long(GOAL - 1), None);
        assert!(too_long(GOAL).is_some());
    }

    #[test]
    fn the_table_of_the_page_fits_the_code() {
        check().unwrap();
    }
}
