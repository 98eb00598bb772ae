//! Reads that are due for the nodes of a tree. Pure: no I/O and no clock.

use super::read_queue::Version;
use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;

/// Kind of a read of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Look {
    Data,
    Names,
}

/// Knowledge about each node, and the queue of reads.
///
/// Answers must be told in the order in which their requests were sent: then the last one told is the newest.
#[derive(Debug)]
pub(super) struct TreeNodes {
    root: Arc<str>,
    max_depth: usize,
    nodes: HashMap<Arc<str>, TreeNode>,
    /// Reads to send. May name some that are not wanted any more.
    queue: VecDeque<(Arc<str>, Look)>,
    /// Number of reads that the sync still waits for.
    due: usize,
    /// Set while a persistent watch tells of every node, so that none needs watches of its own.
    persistent: bool,
}

#[derive(Debug, Default)]
struct TreeNode {
    depth: usize,
    data: Slot,
    names: Slot,
    known: Option<Version>,
    /// False for an ephemeral node, which has no children.
    is_folder: bool,
    /// Set when it was told by a persistent watch, which then tells of its children, too.
    is_told: bool,
    /// Set when that was while its parent was being listed: the listing may be older.
    is_newer: bool,
    children: HashSet<Arc<str>>,
}

/// State of one kind of read of a node.
#[derive(Debug, Default)]
struct Slot {
    stage: Stage,
    /// Set when it changed while it was being read.
    again: bool,
    /// Set while the sync waits for it.
    due: bool,
    /// Set once it was told that the servers refuse it.
    refused: bool,
    watched: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Stage {
    #[default]
    Resting,
    Queued,
    Asked,
}

impl TreeNode {
    fn slot(&mut self, look: Look) -> &mut Slot {
        match look {
            Look::Data => &mut self.data,
            Look::Names => &mut self.names,
        }
    }

    fn is_due(&self) -> usize {
        usize::from(self.data.due) + usize::from(self.names.due)
    }
}

impl TreeNodes {
    pub(super) fn new(root: Arc<str>, max_depth: usize) -> Self {
        let nodes = HashMap::from([(Arc::clone(&root), TreeNode::default())]);
        Self { root, max_depth, nodes, queue: VecDeque::new(), due: 0, persistent: false }
    }

    /// Takes note whether a persistent watch tells of every node from now on. A sync is due after a change.
    pub(super) fn set_persistent(&mut self, persistent: bool) {
        self.persistent = persistent;
    }

    /// True for the path of a node as it was asked for, and false where the node was gone since, also if
    /// there is another one at that path: the answer to that request says nothing about it.
    pub(super) fn is_current(&self, path: &Arc<str>) -> bool {
        self.nodes.get_key_value(path).is_some_and(|(key, _)| Arc::ptr_eq(key, path))
    }

    /// Takes note that a persistent watch told of the creation of a node. It is read if its parent is kept.
    pub(super) fn joined(&mut self, path: &str) {
        // A read under way may have found the node before this one, or none. As the path is another one from
        // now on its answer is not taken.
        let path: Arc<str> = Arc::from(path);
        let old = self.nodes.remove(&path).unwrap_or_default();
        self.due -= old.is_due();
        let mut node =
            TreeNode { known: old.known, children: old.children, is_told: true, ..TreeNode::default() };
        (node.data.refused, node.names.refused) = (old.data.refused, old.names.refused);
        if path != self.root {
            let Some(parent) = self.nodes.get_mut(parent(&path)).filter(|it| it.depth < self.max_depth)
            else {
                return;
            };
            node.depth = parent.depth + 1;
            node.is_newer = parent.names.stage == Stage::Asked;
            parent.children.insert(Arc::clone(&path));
        }
        want(&mut self.queue, &mut self.due, &path, &mut node, Look::Data, false);
        self.nodes.insert(path, node);
    }

    /// Number of nodes, with the root, which is among them also while it does not exist.
    pub(super) fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Begins a sync: everything known is read again. Reads under way are forgotten.
    pub(super) fn begin_sync(&mut self) {
        self.queue.clear();
        self.due = 0;
        for (path, node) in &mut self.nodes {
            (node.is_told, node.is_newer) = (false, false);
            for slot in [&mut node.data, &mut node.names] {
                *slot = Slot { refused: slot.refused, watched: slot.watched, ..Slot::default() };
            }
            want(&mut self.queue, &mut self.due, path, node, Look::Data, true);
            if node.known.is_some() && node.is_folder && node.depth < self.max_depth {
                want(&mut self.queue, &mut self.due, path, node, Look::Names, true);
            }
        }
    }

    /// Takes note that all watches are gone.
    pub(super) fn forget_watches(&mut self) {
        for node in self.nodes.values_mut() {
            (node.data.watched, node.names.watched) = (false, false);
        }
    }

    /// True once everything was read since the sync began.
    pub(super) fn is_synced(&self) -> bool {
        self.due == 0
    }

    /// The next read to send, and whether it leaves a watch, because there is none yet.
    pub(super) fn next(&mut self) -> Option<(Arc<str>, Look, bool)> {
        while let Some((path, look)) = self.queue.pop_front() {
            let Some((key, _)) = self.nodes.get_key_value(&path) else { continue };
            let path = Arc::clone(key);
            if let Some(node) = self.nodes.get_mut(&path)
                && node.slot(look).stage == Stage::Queued
            {
                let slot = node.slot(look);
                slot.stage = Stage::Asked;
                let watch = !slot.watched && !self.persistent;
                return Some((path, look, watch));
            }
        }
        None
    }

    /// Takes note that a read left a watch. True when there was none.
    pub(super) fn watched(&mut self, path: &str, look: Look) -> bool {
        self.nodes.get_mut(path).is_some_and(|node| !std::mem::replace(&mut node.slot(look).watched, true))
    }

    /// Takes note that a watch fired.
    pub(super) fn fired(&mut self, path: &Arc<str>, look: Look) {
        if let Some(node) = self.nodes.get_mut(path) {
            node.slot(look).watched = false;
            self.want(path, look);
        }
    }

    /// True while the servers refuse a read of the node at the tree's path.
    pub(super) fn is_root_refused(&self) -> bool {
        self.nodes.get(&self.root).is_some_and(|root| root.data.refused || root.names.refused)
    }

    /// Queues a read, once more if it is under way.
    pub(super) fn want(&mut self, path: &Arc<str>, look: Look) {
        if let Some(node) = self.nodes.get_mut(path) {
            want(&mut self.queue, &mut self.due, path, node, look, false);
        }
    }

    /// Takes note that a read has no answer: it is sent again.
    pub(super) fn unanswered(&mut self, path: &Arc<str>, look: Look) {
        if let Some(node) = self.nodes.get_mut(path) {
            let slot = node.slot(look);
            (slot.stage, slot.again) = (Stage::Queued, false);
            self.queue.push_back((Arc::clone(path), look));
        }
    }

    /// Takes note that a read was answered. True if the sync waited for it.
    fn answered(&mut self, path: &Arc<str>, look: Look) -> bool {
        let Some(node) = self.nodes.get_mut(path) else { return false };
        let slot = node.slot(look);
        slot.stage = Stage::Resting;
        let was_due = std::mem::take(&mut slot.due);
        self.due -= usize::from(was_due);
        // A change was told while the read was under way: the reply may be older than that change.
        if std::mem::take(&mut slot.again) {
            slot.stage = Stage::Queued;
            self.queue.push_back((Arc::clone(path), look));
        }
        was_due
    }

    /// Takes note that a node's data was read. True when that is news.
    pub(super) fn read(&mut self, path: &Arc<str>, version: Version, is_folder: bool) -> bool {
        let was_due = self.answered(path, Look::Data);
        let Some(node) = self.nodes.get_mut(path) else { return false };
        let known = node.known.replace(version);
        let is_same_node = known.is_some_and(|(czxid, _)| czxid == version.0);
        node.is_folder = is_folder;
        if is_folder && node.depth < self.max_depth && !is_same_node && !node.is_told {
            want(&mut self.queue, &mut self.due, path, node, Look::Names, was_due);
        }
        if known != Some(version) {
            // Told as readable now: another refusal is news again.
            (node.data.refused, node.names.refused) = (false, false);
            return true;
        }
        std::mem::take(&mut node.data.refused) && !node.names.refused
    }

    /// Takes a listing of whole paths. Returns the nodes that were told of and are gone, each after those
    /// below it.
    pub(super) fn listed(&mut self, path: &Arc<str>, children: Vec<Arc<str>>) -> Vec<Arc<str>> {
        let was_due = self.answered(path, Look::Names);
        let Some(node) = self.nodes.get_mut(path) else { return Vec::new() };
        if std::mem::take(&mut node.names.refused) && !node.data.refused {
            // Read once more, and told as readable.
            node.data.refused = true;
            want(&mut self.queue, &mut self.due, path, node, Look::Data, was_due);
        }
        let depth = node.depth + 1;
        let mut children: HashSet<_> = children.into_iter().collect();
        let known = std::mem::take(&mut node.children);
        for child in &known {
            let newer = self.nodes.get_mut(child).is_some_and(|node| std::mem::take(&mut node.is_newer));
            if newer && !children.contains(child) {
                children.insert(Arc::clone(child));
            }
        }
        if let Some(node) = self.nodes.get_mut(path) {
            node.children.clone_from(&children);
        }
        let mut gone = Vec::new();
        for child in known.difference(&children) {
            self.remove(child, &mut gone);
        }
        for child in children.difference(&known) {
            let mut node = TreeNode { depth, ..TreeNode::default() };
            want(&mut self.queue, &mut self.due, child, &mut node, Look::Data, was_due);
            self.nodes.insert(Arc::clone(child), node);
        }
        gone
    }

    /// Takes note that a read was refused. True when that is news.
    pub(super) fn refused(&mut self, path: &Arc<str>, look: Look) -> bool {
        self.answered(path, look);
        self.nodes.get_mut(path).is_some_and(|node| !std::mem::replace(&mut node.slot(look).refused, true))
    }

    /// Takes note that there is no node at `path`. Returns the nodes that were told of and are gone, each
    /// after those below it. The root stays, to be waited for.
    pub(super) fn gone(&mut self, path: &Arc<str>, look: Look) -> Vec<Arc<str>> {
        self.answered(path, look);
        let mut gone = Vec::new();
        self.remove(path, &mut gone);
        if *path == self.root {
            self.nodes.insert(Arc::from(&**path), TreeNode::default());
        } else if let Some(parent) = self.nodes.get_mut(parent(path)) {
            parent.children.remove(path);
        }
        gone
    }

    fn remove(&mut self, path: &Arc<str>, gone: &mut Vec<Arc<str>>) {
        let Some(node) = self.nodes.remove(path) else { return };
        self.due -= node.is_due();
        for child in &node.children {
            self.remove(child, gone);
        }
        if node.known.is_some() || node.data.refused {
            gone.push(Arc::clone(path));
        }
    }
}

fn parent(path: &str) -> &str {
    docent_proto::parent(path).unwrap_or("/")
}

fn want(
    queue: &mut VecDeque<(Arc<str>, Look)>,
    all_due: &mut usize,
    path: &Arc<str>,
    node: &mut TreeNode,
    look: Look,
    due: bool,
) {
    let slot = node.slot(look);
    match slot.stage {
        Stage::Queued => {}
        Stage::Asked => slot.again = true,
        Stage::Resting => {
            slot.stage = Stage::Queued;
            queue.push_back((Arc::clone(path), look));
        }
    }
    if due && !std::mem::replace(&mut slot.due, true) {
        *all_due += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(path: &str) -> Arc<str> {
        Arc::from(path)
    }

    /// The reads that are due now, taken as asked.
    fn asked(nodes: &mut TreeNodes) -> Vec<String> {
        std::iter::from_fn(|| nodes.next()).map(|(path, look, _)| format!("{look:?} {path}")).collect()
    }

    /// A tree `/r` with a child `/r/a`, after a sync.
    fn synced(max_depth: usize) -> TreeNodes {
        let mut nodes = TreeNodes::new(path("/r"), max_depth);
        nodes.begin_sync();
        assert_eq!(asked(&mut nodes), ["Data /r"]);
        assert!(nodes.read(&path("/r"), (1, 1), true));
        assert_eq!(asked(&mut nodes), ["Names /r"]);
        assert!(nodes.listed(&path("/r"), vec![path("/r/a")]).is_empty());
        assert!(!nodes.is_synced());
        assert_eq!(asked(&mut nodes), ["Data /r/a"]);
        assert!(nodes.read(&path("/r/a"), (2, 2), true));
        nodes
    }

    #[test]
    fn a_sync_waits_for_all_that_was_there_when_it_began_and_is_found_by_it() {
        let mut nodes = synced(9);
        assert!(!nodes.is_synced());
        assert_eq!(asked(&mut nodes), ["Names /r/a"]);
        nodes.listed(&path("/r/a"), Vec::new());
        assert!(nodes.is_synced());
        nodes.begin_sync();
        let mut all = asked(&mut nodes);
        all.sort();
        assert_eq!(all, ["Data /r", "Data /r/a", "Names /r", "Names /r/a"]);
    }

    #[test]
    fn nodes_at_the_greatest_depth_and_ephemeral_ones_are_not_listed() {
        assert!(synced(1).is_synced());
        let mut nodes = synced(2);
        nodes.listed(&path("/r/a"), vec![path("/r/a/b"), path("/r/a/c")]);
        asked(&mut nodes);
        nodes.read(&path("/r/a/b"), (3, 3), true);
        nodes.read(&path("/r/a/c"), (3, 3), false);
        assert!(asked(&mut nodes).is_empty() && nodes.is_synced());
    }

    #[test]
    fn a_change_during_a_read_is_read_again_and_one_at_rest_once() {
        let mut nodes = synced(1);
        nodes.want(&path("/r/a"), Look::Data);
        nodes.want(&path("/r/a"), Look::Data);
        assert_eq!(asked(&mut nodes), ["Data /r/a"]);
        nodes.want(&path("/r/a"), Look::Data);
        assert!(nodes.read(&path("/r/a"), (2, 5), true));
        assert_eq!(asked(&mut nodes), ["Data /r/a"]);
        assert!(!nodes.read(&path("/r/a"), (2, 5), true), "no news");
        assert!(asked(&mut nodes).is_empty());
    }

    #[test]
    fn all_below_a_node_that_is_gone_go_before_it() {
        let mut nodes = synced(9);
        asked(&mut nodes);
        nodes.listed(&path("/r/a"), vec![path("/r/a/b")]);
        asked(&mut nodes);
        nodes.read(&path("/r/a/b"), (3, 3), false);
        assert_eq!(nodes.listed(&path("/r"), Vec::new()), [path("/r/a/b"), path("/r/a")]);
        assert!(nodes.is_synced() && nodes.len() == 1);
        // A late answer about one of them is no news.
        assert!(!nodes.read(&path("/r/a/b"), (3, 4), false));
        assert_eq!(nodes.gone(&path("/r"), Look::Data), [path("/r")]);
        assert_eq!(nodes.len(), 1, "it is waited for");
    }

    #[test]
    fn another_node_at_the_path_is_listed_anew() {
        let mut nodes = synced(9);
        asked(&mut nodes);
        nodes.listed(&path("/r/a"), Vec::new());
        nodes.want(&path("/r/a"), Look::Data);
        asked(&mut nodes);
        assert!(nodes.read(&path("/r/a"), (7, 7), true));
        assert_eq!(asked(&mut nodes), ["Names /r/a"]);
    }

    #[test]
    fn a_refusal_is_news_once_and_so_is_its_end() {
        let mut nodes = synced(9);
        asked(&mut nodes);
        assert!(nodes.refused(&path("/r/a"), Look::Names) && !nodes.refused(&path("/r/a"), Look::Names));
        assert!(nodes.is_synced());
        nodes.want(&path("/r/a"), Look::Data);
        asked(&mut nodes);
        assert!(!nodes.read(&path("/r/a"), (2, 2), true), "it still cannot be listed");
        nodes.listed(&path("/r/a"), Vec::new());
        assert_eq!(asked(&mut nodes), ["Data /r/a"]);
        assert!(nodes.read(&path("/r/a"), (2, 2), true));
    }
}
