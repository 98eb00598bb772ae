use crate::nodes::{Known, Nodes, join};
use crate::report::{Recipe, Report};
use docent_config::internals::{HISTORY, RUNNING};

/// ZooKeeper's own folder, which holds no recipes.
const SYSTEM: &str = "/zookeeper";

/// Children of a place that are places themselves.
#[derive(Debug, Clone, Default)]
pub(super) struct Below {
    /// Names in order.
    pub(super) names: Vec<String>,
    /// True if there are such children, and the limit of depth excludes them.
    pub(super) is_deep: bool,
}

impl Below {
    /// Returns the names that `other` does not have, in order.
    pub(super) fn without<'a>(&'a self, other: &'a Self) -> impl Iterator<Item = &'a String> {
        self.names.iter().filter(|name| other.names.binary_search(name).is_err())
    }
}

/// Returns the names below the path of a report that may be separate recipes.
pub(super) fn below(nodes: &Nodes, report: &Report) -> Vec<String> {
    if !matches!(report.recipe, Recipe::Plain(_) | Recipe::Registry(_) | Recipe::Config(_)) {
        return Vec::new();
    }
    let Some(folder) = nodes.folder(&report.path).and_then(Known::present) else { return Vec::new() };
    let names = folder.names.iter().filter(|name| *name != HISTORY && *name != RUNNING);
    names.filter(|name| join(&report.path, name) != SYSTEM).cloned().collect()
}

/// Returns true for the root, and for a path below it.
pub(super) fn is_at_or_below(path: &str, root: &str) -> bool {
    let rest = path.strip_prefix(root.trim_end_matches('/'));
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Returns the number of nodes above a node.
pub(super) fn depth(path: &str) -> usize {
    if path == "/" { 0 } else { path.matches('/').count() }
}

/// Returns true for reports that a walk includes.
pub(super) fn is_recipe(report: &Report) -> bool {
    !matches!(report.recipe, Recipe::Plain(_) | Recipe::Absent | Recipe::Unreadable)
}
