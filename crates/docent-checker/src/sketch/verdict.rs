use super::Sketch;
use crate::check::check;
use crate::violation::Invariant;

impl Sketch {
    /// The invariants that the run breaks, each once.
    pub(crate) fn broken(&self) -> Vec<Invariant> {
        let mut broken: Vec<Invariant> = check(&self.run).iter().map(|found| found.invariant).collect();
        broken.sort_unstable();
        broken.dedup();
        broken
    }

    /// The sentences of one invariant's violations.
    pub(crate) fn sentences(&self, invariant: Invariant) -> Vec<String> {
        let found = check(&self.run);
        found.iter().filter(|found| found.invariant == invariant).map(|found| found.what.clone()).collect()
    }

    /// Asserts that exactly one invariant is broken.
    #[track_caller]
    pub(crate) fn breaks(&self, invariant: Invariant) {
        assert_eq!(self.broken(), [invariant], "{:#?}", check(&self.run));
    }

    /// Asserts that this invariant is broken, perhaps with others.
    #[track_caller]
    pub(crate) fn breaks_also(&self, invariant: Invariant) {
        assert!(self.broken().contains(&invariant), "{:#?}", check(&self.run));
    }

    /// Asserts that nothing is broken.
    #[track_caller]
    pub(crate) fn holds(&self) {
        assert_eq!(check(&self.run), []);
    }
}
