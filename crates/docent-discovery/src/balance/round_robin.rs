use super::Candidates;
use std::collections::VecDeque;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Mutex, PoisonError};

/// Sets of candidates whose turns are remembered: those that were picked from last.
pub(super) const SETS: usize = 64;

/// Round robin within each set of candidates on its own: picks from one set, such as those that pass a
/// filter, move no other one on.
///
/// A set that is not remembered begins anywhere, so that its candidates have their shares also where more
/// sets take turns than are remembered.
#[derive(Debug, Default)]
pub(super) struct RoundRobin(Mutex<VecDeque<Turn>>);

/// Turn of one set.
#[derive(Debug)]
struct Turn {
    /// Hash of the candidates' keys. Sets with the same hash would share a turn, which does no other harm.
    set: u64,
    next: usize,
}

impl RoundRobin {
    /// Index of the candidate whose turn it is among `candidates`, of which there is at least one.
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
