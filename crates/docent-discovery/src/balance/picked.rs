use super::load::Trial;
use super::{Balance, Candidate};
use crate::Instance;
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;
use tokio::time::Instant;

/// An instance that was picked for one piece of work. It counts as in flight until this is dropped.
///
/// Say how it went: [`failed`](Self::failed), so that an instance that fails is [set
/// aside](crate::OutlierPolicy), and [`succeeded`](Self::succeeded), so that one that works counts as sound
/// again.
///
/// # On drop
/// The work is over, and nothing is said about the instance: as after a cancelled request.
#[must_use = "it counts as in flight until it is dropped"]
pub struct Picked<P> {
    candidate: Candidate<P>,
    balance: Arc<Balance>,
    /// Set when this pick decides about the probation of the instance.
    trial: Option<Trial>,
}

impl<P> Picked<P> {
    pub(super) fn new(candidate: Candidate<P>, balance: Arc<Balance>) -> Self {
        let trial = candidate.load.begin();
        Self { candidate, balance, trial }
    }

    /// The instance, to keep.
    pub fn instance(&self) -> &Arc<Instance<P>> {
        &self.candidate.instance
    }

    /// The name of its node.
    #[cfg(feature = "tower")]
    pub(crate) fn key(&self) -> &Arc<str> {
        &self.candidate.key
    }

    /// Says that it [succeeded](Self::succeeded), and goes on to count as in flight.
    #[cfg(feature = "tower")]
    pub(crate) fn sound(self) -> Self {
        self.candidate.load.succeeded(self.trial);
        self
    }

    /// The work succeeded, as far as the instance is concerned. That says nothing of failures since the pick
    /// by which the instance was set aside.
    pub fn succeeded(self) {
        self.candidate.load.succeeded(self.trial);
    }

    /// The instance failed: it could not be reached, or did not do its work.
    pub fn failed(self) {
        if self.candidate.load.failed(Instant::now(), self.balance.rule) {
            tracing::warn!(service = %self.name, instance = %self.id, "an instance fails and is set aside");
            self.balance.is_aside(&self.candidate.load);
        }
    }
}

impl<P> Deref for Picked<P> {
    type Target = Instance<P>;

    fn deref(&self) -> &Instance<P> {
        &self.candidate.instance
    }
}

impl<P> Drop for Picked<P> {
    fn drop(&mut self) {
        self.candidate.load.end(self.trial);
    }
}

impl<P> fmt::Debug for Picked<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Picked").field(&self.candidate.instance).finish()
    }
}
