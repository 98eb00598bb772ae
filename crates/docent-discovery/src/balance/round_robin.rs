use super::Candidates;
use std::collections::VecDeque;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Mutex, PoisonError};

/// Number of candidate sets whose position is remembered: the most recently used ones.
pub(super) const SETS: usize = 64;

/// Separate round robin within each set of candidates: picks from one set, such as the candidates that pass a
/// filter, do not advance any other set.
///
/// A set that is not remembered starts at a random position. So its candidates get equal shares even if more
/// sets take turns than are remembered.
#[derive(Debug, Default)]
pub(super) struct RoundRobin(Mutex<VecDeque<Turn>>);

/// Position in one set.
#[derive(Debug)]
struct Turn {
    /// Hash of the candidates' keys. Sets with the same hash share a position, which does no other harm.
    set: u64,
    next: usize,
}

impl RoundRobin {
    /// Returns the index of the candidate whose turn it is among `candidates`, which must not be empty.
    pub(super) fn take<P>(&self, candidates: &(impl Candidates<P> + ?Sized)) -> usize {
        let mut hasher = DefaultHasher::new();
        candidates.each().for_each(|candidate| candidate.key.hash(&mut hasher));
        let (set, count) = (hasher.finish(), candidates.count());
        let mut turns = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let known = turns.iter().position(|turn| turn.set == set).and_then(|place| turns.remove(place));
        let index = known.map_or_else(|| fastrand::usize(..count), |turn| turn.next % count);
        turns.push_front(Turn { set, next: index + 1 });
        turns.truncate(SETS);
        index
    }
}
