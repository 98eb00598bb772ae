mod limit;

use super::Limits;
use super::below::{Below, below, depth, is_at_or_below, is_recipe};
use super::inspector::{Inspected, inspect_nodes, server_time};
use super::survey::Survey;
use super::turns::Turns;
use crate::nodes::{Answer, Nodes, Read, join};
use crate::report::{Ephemeral, LeftOut, Refusal, Report};
use docent_core::Stat;
use docent_core::recipe::is_own_name;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;
use std::time::SystemTime;
use tokio::time::Instant;

/// Maximum number of places that are inspected at the same time.
const WINDOW: usize = 256;

/// Recipes at and below a root, as far as their nodes were read. Does no I/O: [`advance`](Self::advance)
/// returns the reads that are missing, until there are none.
///
/// A *place* is a path that is inspected separately: the root, and each node below it that is not part of a
/// recipe. Each place knows the reads that it is based on, so a change costs as much as the places that have
/// read the changed node.
///
/// Folders are completed one after the other, and each place with everything it needs. If the limit of nodes
/// is reached, the remaining places are cut.
pub(crate) struct Tree {
    root: Arc<str>,
    limits: Limits,
    /// False for a report on the root alone.
    descends: bool,
    nodes: Nodes,
    places: HashMap<Arc<str>, Place>,
    /// Places that are based on each read.
    readers: HashMap<Read, Vec<Arc<str>>>,
    /// Places to inspect, the next one last.
    queue: Vec<Arc<str>>,
    /// Places that are being inspected, in order: some of their reads are missing.
    open: Vec<Arc<str>>,
    /// Places that the limit of nodes has cut.
    cut: BTreeSet<Arc<str>>,
    /// Known places of which the limit of nodes has omitted reads.
    partial: BTreeSet<Arc<str>>,
    /// Number of nodes with which the limit was reached. With fewer nodes, what it has omitted is tried
    /// again.
    full: usize,
    /// True once partial places were tried again since [`advance`](Self::advance) was last finished.
    is_retried: bool,
    /// Reads of nodes outside of the root: some recipes keep part of their state beside them.
    outside: BTreeSet<Read>,
    deep: usize,
    turns: Turns,
    changes: HashSet<Arc<str>>,
}

#[derive(Default)]
struct Place {
    /// True while the place is to be inspected.
    is_due: bool,
    /// True once the place was inspected.
    is_known: bool,
    /// Report, if the place is shown.
    report: Option<Arc<Report>>,
    reads: Vec<Read>,
    below: Below,
}

impl Tree {
    /// Creates the tree of all recipes at and below `root`.
    pub(crate) fn below(root: &str, limits: &Limits) -> Self {
        Self::new(root, limits, true)
    }

    /// Creates the tree of the report on `path` alone, which need not be a recipe.
    pub(crate) fn only(path: &str, limits: &Limits) -> Self {
        Self::new(path, limits, false)
    }

    fn new(root: &str, limits: &Limits, descends: bool) -> Self {
        let root: Arc<str> = Arc::from(root);
        let mut tree = Self {
            root: Arc::clone(&root),
            limits: limits.clone(),
            descends,
            nodes: Nodes::default(),
            places: HashMap::from([(Arc::clone(&root), Place::default())]),
            readers: HashMap::new(),
            queue: Vec::new(),
            open: Vec::new(),
            cut: BTreeSet::new(),
            partial: BTreeSet::new(),
            full: 0,
            is_retried: false,
            outside: BTreeSet::new(),
            deep: 0,
            turns: Turns::default(),
            changes: HashSet::new(),
        };
        tree.enqueue(&root);
        tree
    }

    /// Inspects places as far as their nodes were read. Returns the reads that are missing, or none if all
    /// places were inspected. Ages are relative to `now`, the time of the servers.
    pub(crate) fn advance(&mut self, now: Option<SystemTime>) -> Vec<Read> {
        loop {
            let window = WINDOW.min(self.room() / 8).max(1);
            while self.open.len() < window
                && let Some(path) = self.queue.pop()
            {
                self.open.push(path);
            }
            if self.open.is_empty() {
                if self.retry() {
                    continue;
                }
                return Vec::new();
            }
            let mut missing = Vec::new();
            for path in std::mem::take(&mut self.open) {
                match inspect_nodes(&self.nodes, &path, now, &self.limits) {
                    _ if !self.places.contains_key(&path) => {}
                    Ok(inspected) => match self.omitted(&path, &inspected.reads) {
                        omitted if omitted.is_empty() => self.accept(&path, inspected),
                        omitted => missing.push((path, omitted)),
                    },
                    Err(reads) => missing.push((path, reads)),
                }
            }
            let reads = self.within_limit(missing);
            if !reads.is_empty() {
                return reads;
            }
        }
    }

    /// Returns true if places are to be inspected.
    pub(crate) fn is_due(&self) -> bool {
        !self.queue.is_empty() || !self.open.is_empty() || self.has_room()
    }

    /// Returns the reads of nodes outside of the root.
    pub(crate) fn outside(&self) -> impl Iterator<Item = &Read> {
        self.outside.iter()
    }

    /// Adds the answer to a read.
    pub(crate) fn answer(&mut self, read: Read, answer: Answer) {
        self.nodes.add(read, answer);
    }

    /// Records that a node has changed, or was created or deleted if `is_set` is true.
    pub(crate) fn node_changed(&mut self, path: &str, is_set: bool) {
        let (parent, name) = path.rsplit_once('/').unwrap_or_default();
        if is_own_name(name) {
            return;
        }
        self.changed(&Read::Data(path.to_owned()));
        self.changed(&Read::Children(path.to_owned()));
        if is_set && !name.is_empty() {
            self.changed(&Read::Children(if parent.is_empty() { "/" } else { parent }.to_owned()));
        }
    }

    /// Records that the answer to a read no longer holds.
    pub(crate) fn changed(&mut self, read: &Read) {
        self.nodes.remove(read);
        for path in self.readers.get(read).cloned().unwrap_or_default() {
            self.enqueue(&path);
        }
    }

    /// Compares a node with what was read of it, after a time in which changes were not reported. `stat` is
    /// `None` if the node does not exist.
    pub(crate) fn verify(&mut self, path: &str, stat: Option<&Stat>) {
        for read in [Read::Data(path.to_owned()), Read::Children(path.to_owned())] {
            if !self.nodes.agrees(&read, stat) {
                self.changed(&read);
            }
        }
    }

    /// Schedules the places whose state has changed because time passed.
    pub(crate) fn take_turns(&mut self, now: Instant) {
        while let Some(path) = self.turns.take(now) {
            self.enqueue(&path);
        }
    }

    /// Returns the time at which the next report changes merely because time passes.
    pub(crate) fn next_turn(&self) -> Option<Instant> {
        self.turns.next()
    }

    /// Returns the places whose reports have changed since the last call, each with its report, or `None` if
    /// it is no longer shown.
    pub(crate) fn take_changes(&mut self) -> Vec<(Arc<str>, Option<Arc<Report>>)> {
        let changes = std::mem::take(&mut self.changes).into_iter();
        let report = |path: &str| self.places.get(path).and_then(|place| place.report.clone());
        changes.map(|path| (Arc::clone(&path), report(&path))).collect()
    }

    /// Returns the report on the root, once the root was inspected.
    pub(crate) fn report(&self) -> Option<&Arc<Report>> {
        self.places.get(&self.root)?.report.as_ref()
    }

    /// Returns everything about the tree except for the recipes.
    pub(crate) fn summary(&self, now: Option<SystemTime>) -> Survey {
        let left_out = self.nodes.left_out();
        Survey {
            root: self.root.to_string(),
            found: Vec::new(),
            ephemerals: Vec::new(),
            nodes: self.nodes.len(),
            refused: self.nodes.refused().map(|path| Refusal { path: path.clone() }).collect(),
            left_out: LeftOut { deep: self.deep, nodes: left_out.nodes + self.cut.len(), ..left_out },
            as_of_zxid: self.nodes.newest_zxid(),
            clock: server_time(&self.nodes, now),
        }
    }

    /// Returns all recipes.
    pub(crate) fn survey(&self, now: Option<SystemTime>) -> Survey {
        let found = self.places.values().filter_map(|place| place.report.as_deref().cloned()).collect();
        let summary = self.summary(now);
        let ephemeral = |(path, stat): (&str, &Stat)| {
            let (session, since) = (stat.owner?, summary.clock?.since(stat.created));
            Some(Ephemeral { path: path.to_owned(), session, since })
        };
        let ephemerals = self.nodes.stats().into_iter().filter_map(ephemeral).collect();
        Survey { found, ephemerals, ..summary }.sorted()
    }

    pub(crate) fn nodes(&self) -> &Nodes {
        &self.nodes
    }

    /// Returns the reads that each place is based on.
    pub(crate) fn reads(&self) -> impl Iterator<Item = (&str, &[Read])> {
        self.places.iter().map(|(path, place)| (&**path, &*place.reads))
    }

    fn enqueue(&mut self, path: &Arc<str>) {
        let Some(place) = self.places.get_mut(path) else { return };
        if !std::mem::replace(&mut place.is_due, true) {
            // A limit may have become less strict.
            let may_read_data = self.nodes.bytes() < self.limits.data_bytes;
            place.reads.iter().for_each(|read| self.nodes.retry(read, may_read_data));
            self.queue.push(Arc::clone(path));
        }
    }

    /// Takes over a complete inspection of a place.
    fn accept(&mut self, path: &Arc<str>, Inspected { report, reads }: Inspected) {
        let names = if self.descends { below(&self.nodes, &report) } else { Vec::new() };
        let below = if depth(path) - depth(&self.root) < self.limits.depth {
            Below { is_deep: false, names }
        } else {
            Below { is_deep: !names.is_empty(), names: Vec::new() }
        };
        self.turns.set(path, &report);
        if !reads.iter().any(|read| self.nodes.is_omitted(read)) {
            self.partial.remove(path);
        }
        let is_shown = is_recipe(&report) && (report.part_of.is_none() || *path == self.root);
        let shown = (!self.descends || is_shown).then(|| Arc::new(report));
        let Some(place) = self.places.get_mut(path) else { return };
        (place.is_due, place.is_known) = (false, true);
        let without_times = |report: &Option<Arc<Report>>| report.as_deref().map(Report::without_times);
        if without_times(&place.report) != without_times(&shown) {
            self.changes.insert(Arc::clone(path));
        }
        place.report = shown;
        let reads_before = std::mem::replace(&mut place.reads, reads.clone());
        let below_before = std::mem::replace(&mut place.below, below.clone());
        self.index(path, &reads_before, &reads);
        self.deep = self.deep + usize::from(below.is_deep) - usize::from(below_before.is_deep);
        for name in below_before.without(&below) {
            self.remove(&Arc::from(join(path, name)));
        }
        // The next one is last.
        for name in below.without(&below_before).collect::<Vec<_>>().into_iter().rev() {
            let child: Arc<str> = Arc::from(join(path, name));
            self.places.insert(Arc::clone(&child), Place::default());
            self.enqueue(&child);
        }
    }

    /// Replaces the reads of a place in the index, and forgets answers that no place needs any more.
    fn index(&mut self, path: &Arc<str>, before: &[Read], after: &[Read]) {
        if before == after {
            return;
        }
        let (old, new): (HashSet<_>, HashSet<_>) = (before.iter().collect(), after.iter().collect());
        for read in after.iter().filter(|read| !old.contains(read)) {
            self.readers.entry(read.clone()).or_default().push(Arc::clone(path));
            if !is_at_or_below(read.path(), &self.root) {
                self.outside.insert(read.clone());
            }
        }
        for read in before.iter().filter(|read| !new.contains(read)) {
            let Some(readers) = self.readers.get_mut(read) else { continue };
            readers.retain(|reader| reader != path);
            if readers.is_empty() {
                self.readers.remove(read);
                self.outside.remove(read);
                self.nodes.remove(read);
            }
        }
    }

    /// Forgets a place, and all places below it.
    fn remove(&mut self, path: &Arc<str>) {
        let Some(place) = self.places.remove(path) else { return };
        self.deep -= usize::from(place.below.is_deep);
        self.turns.remove(path);
        if place.report.is_some() {
            self.changes.insert(Arc::clone(path));
        }
        self.index(path, &place.reads, &[]);
        self.cut.remove(path);
        self.partial.remove(path);
        for name in &place.below.names {
            self.remove(&Arc::from(join(path, name)));
        }
    }
}
