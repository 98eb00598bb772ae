use super::selection::Selection;
use crate::args::duration;
use clap::Args;
use docent::inspect::Kind;
use std::time::Duration;

/// Show which recipe a path is and its state, whether Docent, Curator or kazoo wrote it.
///
/// Ages are measured by the servers' clock. To read that clock, the command sets its own ephemeral node in a
/// folder named _docent.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Path of a lock, election, queue, service, configuration or another recipe
    pub(super) path: String,

    /// Keep running, and print the state again after each change
    #[arg(short, long)]
    pub(super) watch: bool,
}

/// List the recipes below a path.
///
/// If a limit is reached, whole recipes or the data of some nodes are missing. The command reports that, with
/// -o json as a line with "cut", and exits with 74; with --watch it keeps running.
#[derive(Debug, Args)]
pub(crate) struct ListArguments {
    /// Kind to list: locks, elections, services, queues or configs; then the path to start at
    #[arg(value_name = "KIND] [ROOT", num_args = 0..=2)]
    words: Vec<String>,

    #[command(flatten)]
    pub(super) selection: Selection,

    /// Keep running, and print each change
    #[arg(short, long)]
    pub(super) watch: bool,

    /// Poll interval with --watch for nodes that are not watched: servers before ZooKeeper 3.6 have no watch
    /// for a whole tree
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = duration)]
    pub(super) every: Duration,

    /// Maximum number of nodes to read. Recipes beyond it are not listed, and the exit code is 74
    #[arg(long, value_name = "NUMBER", default_value_t = 100_000)]
    pub(super) nodes: usize,

    /// Maximum depth to descend
    #[arg(long, value_name = "NUMBER", default_value_t = 16)]
    pub(super) depth: usize,
}

/// Recipes for each kind of `ls`.
const KINDS: [(&str, &[Kind]); 5] = [
    ("locks", &[Kind::Mutex, Kind::ReadWriteLock, Kind::Semaphore, Kind::TimedLease]),
    ("elections", &[Kind::Election]),
    ("services", &[Kind::Service, Kind::Registry]),
    ("queues", &[Kind::Queue]),
    ("configs", &[Kind::Config, Kind::Value, Kind::Counter]),
];

/// Returns the words for kinds.
pub(crate) fn kind_names() -> impl Iterator<Item = &'static str> {
    KINDS.iter().map(|(name, _)| *name)
}

impl ListArguments {
    /// Returns the path to start at and the kinds to list, `None` for all.
    ///
    /// # Errors
    /// The rule that the words break.
    pub(super) fn selection(&self) -> Result<(&str, Option<&'static [Kind]>), String> {
        let (kind, root) = match &self.words[..] {
            [] => (None, "/"),
            [root] if root.starts_with('/') => (None, &**root),
            [kind] => (Some(kind), "/"),
            [kind, root, ..] => (Some(kind), &**root),
        };
        let kinds = kind.map(|kind| {
            let known = KINDS.iter().find(|(name, _)| name == kind);
            let rule =
                || format!("{kind:?} must be locks, elections, services, queues or configs, or a path");
            known.map(|(_, kinds)| *kinds).ok_or_else(rule)
        });
        Ok((root, kinds.transpose()?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Debug, Parser)]
    struct Command {
        #[command(flatten)]
        list: ListArguments,
    }

    fn selection(words: &[&str]) -> Result<(String, Option<usize>), String> {
        let command = Command::parse_from(["ls"].iter().chain(words));
        command.list.selection().map(|(root, kinds)| (root.to_owned(), kinds.map(<[_]>::len)))
    }

    #[test]
    fn kind_and_root_are_both_optional() {
        assert_eq!(selection(&[]), Ok(("/".into(), None)));
        assert_eq!(selection(&["/shop"]), Ok(("/shop".into(), None)));
        assert_eq!(selection(&["queues"]), Ok(("/".into(), Some(1))));
        assert_eq!(selection(&["locks", "/shop"]), Ok(("/shop".into(), Some(4))));
        assert!(selection(&["lock"]).unwrap_err().contains("must be locks"));
    }
}
