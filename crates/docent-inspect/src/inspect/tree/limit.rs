//! The limit of nodes of a tree.

use super::Tree;
use crate::nodes::Read;
use std::collections::HashSet;
use std::sync::Arc;

impl Tree {
    /// Returns the number of nodes that may still be read.
    pub(super) fn room(&self) -> usize {
        self.limits.nodes.max(1).saturating_sub(self.nodes.len())
    }

    /// Returns the reads that the limit of nodes allows, and leaves their places open. The first place that
    /// would exceed the limit waits until those before it are complete. Then it is cut with all that follow.
    /// A place that is shown already, and the root, are read as far as possible instead.
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
            let is_first = self.open.is_empty();
            if is_first && self.may_be_partial(&path) {
                self.open.push(path);
                reads = self.as_far_as_possible(wanted, room);
            } else {
                self.queue
                    .extend(missing.by_ref().map(|(path, _)| path).collect::<Vec<_>>().into_iter().rev());
                self.queue.push(path);
                if is_first {
                    self.cut_rest();
                }
                return reads;
            }
            self.queue.extend(missing.by_ref().map(|(path, _)| path).collect::<Vec<_>>().into_iter().rev());
        }
        reads
    }

    /// Returns the reads that another place has omitted, if this place needs all of its reads, and forgets their
    /// answers.
    pub(super) fn omitted(&mut self, path: &Arc<str>, reads: &[Read]) -> Vec<Read> {
        if self.may_be_partial(path) {
            return Vec::new();
        }
        let omitted: Vec<_> = reads.iter().filter(|read| self.nodes.is_omitted(read)).cloned().collect();
        omitted.iter().for_each(|read| self.nodes.retry(read));
        omitted
    }

    /// Returns true for the root, and for a place that is shown already.
    fn may_be_partial(&self, path: &Arc<str>) -> bool {
        *path == self.root || self.places.get(path).is_some_and(|place| place.is_known)
    }

    /// Omits the reads beyond the limit.
    fn as_far_as_possible(&mut self, wanted: Vec<Read>, room: usize) -> Vec<Read> {
        let mut new = HashSet::new();
        let (within, beyond): (Vec<_>, Vec<_>) = wanted.into_iter().partition(|read| {
            let path = read.path();
            self.nodes.has(path) || new.contains(path) || (new.len() < room && new.insert(path.to_owned()))
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
