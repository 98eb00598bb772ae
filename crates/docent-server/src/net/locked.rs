use super::ensemble::Ensemble;
use crate::log::Log;
use std::ops::{Deref, DerefMut};
use std::sync::MutexGuard;

/// The ensemble while it is locked. Dropping it unlocks the ensemble, and then writes its log entries.
pub(crate) struct Locked<'a> {
    // Dropped in this order.
    ensemble: MutexGuard<'a, Ensemble>,
    log: Log,
}

impl<'a> Locked<'a> {
    pub(super) fn new(ensemble: MutexGuard<'a, Ensemble>) -> Self {
        Self { ensemble, log: Log::default() }
    }
}

impl Drop for Locked<'_> {
    fn drop(&mut self) {
        self.log = std::mem::take(&mut self.ensemble.log);
    }
}

impl Deref for Locked<'_> {
    type Target = Ensemble;

    fn deref(&self) -> &Ensemble {
        &self.ensemble
    }
}

impl DerefMut for Locked<'_> {
    fn deref_mut(&mut self) -> &mut Ensemble {
        &mut self.ensemble
    }
}
