use super::nodes::newest_zxid;
use super::{Data, Folder, Known, Nodes, Read};
use crate::inspect::Limits;
use crate::report::{LeftOut, Refusal, ServerTime, Since, TimeSource};
use docent_core::Stat;
use std::cell::{Cell, RefCell};
use std::collections::{BTreeSet, HashSet};
use std::time::SystemTime;

/// View of `Nodes` that records each missing read. Recognition itself does no I/O: it is repeated after each
/// round of reads until nothing is missing.
#[derive(Debug)]
pub(crate) struct View<'a> {
    nodes: &'a Nodes,
    /// Time of the servers' clock that ages are relative to.
    clock: ServerTime,
    limits: &'a Limits,
    touched: RefCell<Touched>,
    /// Number of nodes omitted because of a limit.
    skipped: Cell<usize>,
}

/// Requested reads in order, without duplicates.
#[derive(Debug, Default)]
struct Touched {
    order: Vec<Read>,
    seen: HashSet<Read>,
}

impl<'a> View<'a> {
    pub(crate) fn new(nodes: &'a Nodes, clock: Option<ServerTime>, limits: &'a Limits) -> Self {
        // Without a clock there is no node that could have an age.
        let epoch = ServerTime { now: SystemTime::UNIX_EPOCH, source: TimeSource::NewestStat };
        Self {
            nodes,
            clock: clock.unwrap_or(epoch),
            limits,
            touched: RefCell::default(),
            skipped: Cell::default(),
        }
    }

    pub(crate) fn limits(&self) -> &'a Limits {
        self.limits
    }

    /// Returns the first `most` of `names`; the rest counts as omitted.
    pub(crate) fn first<'b, T>(&self, names: &'b [T], most: usize) -> &'b [T] {
        let (first, omitted) = names.split_at(names.len().min(most));
        self.skipped.set(self.skipped.get() + omitted.len());
        first
    }

    /// Returns the data of a node, or `None` if it is not known yet or there is none.
    pub(crate) fn data(&self, path: &str) -> Option<&'a Data> {
        self.touch(Read::Data(path.to_owned()));
        self.nodes.data(path)?.present()
    }

    /// Returns true if a node was requested and does not exist.
    pub(crate) fn was_deleted(&self, path: &str) -> bool {
        matches!(self.nodes.data(path), Some(Known::Absent))
    }

    /// Returns the children of a node; `None` as for [`data`](Self::data).
    pub(crate) fn folder(&self, path: &str) -> Option<&'a Folder> {
        self.known_folder(path)?.present()
    }

    /// Returns the result of listing a node, or `None` if this was not tried yet.
    pub(crate) fn known_folder(&self, path: &str) -> Option<&'a Known<Folder>> {
        self.touch(Read::Children(path.to_owned()));
        self.nodes.folder(path)
    }

    /// Returns a time with its age.
    pub(crate) fn since(&self, at: SystemTime) -> Since {
        self.clock.since(at)
    }

    pub(crate) fn now(&self) -> SystemTime {
        self.clock.now
    }

    /// Returns the requested reads that are not known yet.
    pub(crate) fn missing(&self) -> Vec<Read> {
        let touched = self.touched.borrow();
        touched.order.iter().filter(|read| self.nodes.known(read).is_none()).cloned().collect()
    }

    /// Returns the requested nodes that may not be read.
    pub(crate) fn refused(&self) -> Vec<Refusal> {
        let refused = self.paths_with(|known| matches!(known, Known::Refused));
        refused.into_iter().map(|path| Refusal { path }).collect()
    }

    /// Counts the requested nodes that were omitted.
    pub(crate) fn left_out(&self) -> LeftOut {
        let omitted = self.paths_with(|known| matches!(known, Known::LeftOut));
        let touched = self.touched.borrow();
        let data = touched.order.iter().filter(|read| self.nodes.is_stat_only(read)).count();
        LeftOut { nodes: omitted.len() + self.skipped.get(), deep: 0, data }
    }

    /// Returns the paths of the requested reads with such a result, in order.
    fn paths_with(&self, is_such: fn(Known<Stat>) -> bool) -> BTreeSet<String> {
        let touched = self.touched.borrow();
        let reads = touched.order.iter().filter(|read| self.nodes.known(read).is_some_and(is_such));
        reads.map(|read| read.path().to_owned()).collect()
    }

    /// Returns the newest transaction in any requested node, or 0 if there is none.
    pub(crate) fn newest_zxid(&self) -> i64 {
        let touched = self.touched.borrow();
        let stats = touched.order.iter().filter_map(|read| self.nodes.stat(read.path()));
        stats.map(newest_zxid).max().unwrap_or_default()
    }

    /// Returns the requested reads in order.
    pub(crate) fn touched(&self) -> Vec<Read> {
        self.touched.borrow().order.clone()
    }

    fn touch(&self, read: Read) {
        let mut touched = self.touched.borrow_mut();
        if touched.seen.insert(read.clone()) {
            touched.order.push(read);
        }
    }
}
