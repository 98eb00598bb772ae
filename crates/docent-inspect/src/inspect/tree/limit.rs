//! The limit of nodes of a tree.

use super::Tree;
use crate::nodes::Read;
use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;

impl Tree {
    /// Returns the number of nodes that may still be read.
    pub(super) fn room(&self) -> usize {
        self.limits.nodes.max(1).saturating_sub(self.nodes.len())
    }

    /// Returns true if something that the limit of nodes has omitted may fit now.
    pub(super) fn has_room(&self) -> bool {
        self.nodes.len() < self.full && !(self.cut.is_empty() && self.partial.is_empty())
    }

    /// Schedules what the limit of nodes has omitted and may fit now. Returns false if there is nothing.
    pub(super) fn retry(&mut self) -> bool {
        let mut partial = BTreeSet::new();
        if self.has_room() && !std::mem::replace(&mut self.is_retried, true) {
            partial = std::mem::take(&mut self.partial);
        }
        // Each place needs at least one node.
        let room = self.full.saturating_sub(self.nodes.len());
        let next: Vec<_> = self.cut.iter().take(room).cloned().collect();
        for path in &next {
            self.cut.remove(path);
        }
        if partial.is_empty() && next.is_empty() {
            self.is_retried = false;
            self.full = self.full.min(self.nodes.len());
            return false;
        }
        if !next.is_empty() {
            // Until a place does not fit again, more of them may.
            self.full = self.full.max(self.limits.nodes.max(1));
        }
        self.queue.extend(next.into_iter().rev());
        partial.iter().for_each(|path| self.enqueue(path));
        true
    }

    /// Returns the reads that the limit of nodes allows, and leaves their places open. A place that would
    /// exceed the limit waits until all earlier places are complete. If the place still does not fit, it
    /// and all later new places are cut. A place that is shown already, and the root, are read as far as
    /// possible.
    pub(super) fn within_limit(&mut self, missing: Vec<(Arc<str>, Vec<Read>)>) -> Vec<Read> {
        let room = self.room();
        let (mut reads, mut new) = (Vec::new(), HashSet::new());
        let mut missing = missing.into_iter();
        while let Some((path, wanted)) = missing.next() {
            let is_new = |read: &&Read| !self.nodes.has(read.path()) && !new.contains(read.path());
            let more: HashSet<String> = wanted.iter().filter(is_new).map(|it| it.path().to_owned()).collect();
            if new.len() + more.len() <= room {
                new.extend(more);
                reads.extend(wanted);
                self.open.push(path);
                continue;
            }
            self.queue.extend(missing.map(|(path, _)| path).rev());
            let is_first = self.open.is_empty();
            if is_first && self.may_be_partial(&path) {
                reads = self.as_far_as_possible(&path, wanted, room);
                self.partial.insert(Arc::clone(&path));
                self.full = self.full.max(self.limits.nodes.max(1));
                self.open.push(path);
            } else {
                self.queue.push(path);
                if is_first {
                    self.cut_rest();
                }
            }
            break;
        }
        reads
    }

    /// Returns those of `reads` that were omitted for another place, and clears them so that they are read
    /// again. Returns none if this place may be partial.
    pub(super) fn omitted(&mut self, path: &Arc<str>, reads: &[Read]) -> Vec<Read> {
        if self.may_be_partial(path) {
            return Vec::new();
        }
        let omitted: Vec<_> = reads.iter().filter(|read| self.nodes.is_omitted(read)).cloned().collect();
        omitted.iter().for_each(|read| self.nodes.retry(read, false));
        omitted
    }

    /// Returns true for the root, and for a place that is shown already.
    fn may_be_partial(&self, path: &Arc<str>) -> bool {
        *path == self.root || self.places.get(path).is_some_and(|place| place.is_known)
    }

    /// Omits the reads beyond the limit, but not those of the place itself: without them, a known recipe and
    /// everything below it would seem to be deleted.
    fn as_far_as_possible(&mut self, place: &str, wanted: Vec<Read>, room: usize) -> Vec<Read> {
        let mut new = HashSet::new();
        let (within, beyond): (Vec<_>, Vec<_>) = wanted.into_iter().partition(|read| {
            let path = read.path();
            path == place
                || self.nodes.has(path)
                || new.contains(path)
                || (new.len() < room && new.insert(path.to_owned()))
        });
        beyond.into_iter().for_each(|read| self.nodes.omit(read));
        within
    }

    /// Cuts all queued places that are not known yet.
    fn cut_rest(&mut self) {
        let is_known = |path: &Arc<str>| self.places.get(path).is_some_and(|place| place.is_known);
        let (known, cut): (Vec<_>, Vec<_>) = std::mem::take(&mut self.queue).into_iter().partition(is_known);
        self.cut.extend(cut.into_iter().filter(|path| self.places.contains_key(path)));
        self.queue = known;
        self.full = self.nodes.len();
    }
}
