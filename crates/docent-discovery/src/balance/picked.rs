use super::load::Trial;
use super::{Balance, Candidate};
use crate::Instance;
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;
use tokio::time::Instant;

/// An instance that was picked for one piece of work. It counts as in flight until this value is dropped.
///
/// Report the outcome: [`failed`](Self::failed), so that a failing instance is [set
/// aside](crate::OutlierPolicy), or [`succeeded`](Self::succeeded), so that a working instance counts as
/// healthy again.
///
/// # On drop
/// The work ends without a report about the instance, as after a cancelled request.
#[must_use = "the instance counts as in flight until this is dropped"]
pub struct Picked<P> {
    candidate: Candidate<P>,
    balance: Arc<Balance>,
    /// Set if this pick decides the probation of the instance.
    trial: Option<Trial>,
}

impl<P> Picked<P> {
    pub(super) fn new(candidate: Candidate<P>, balance: Arc<Balance>) -> Self {
        let trial = candidate.load.begin();
        Self { candidate, balance, trial }
    }

    /// Returns the instance, which can be cloned and kept longer than the pick.
    pub fn instance(&self) -> &Arc<Instance<P>> {
        &self.candidate.instance
    }

    /// Returns the name of the instance's node.
    #[cfg(feature = "tower")]
    pub(crate) fn key(&self) -> &Arc<str> {
        &self.candidate.key
    }

    /// Reports [success](Self::succeeded), and still counts as in flight.
    #[cfg(feature = "tower")]
    pub(crate) fn mark_succeeded(self) -> Self {
        self.candidate.load.succeeded(self.trial);
        self
    }

    /// Reports that the instance succeeded at the work. If other failures set the instance aside after this
    /// pick, it stays set aside.
    pub fn succeeded(self) {
        self.candidate.load.succeeded(self.trial);
    }

    /// Reports that the instance failed: it could not be reached, or did not do its work.
    pub fn failed(self) {
        if self.candidate.load.failed(Instant::now(), self.balance.rule) {
            // Event: An instance failed repeatedly. It is not picked for the period of the outlier policy,
            // and is then tried again.
            // Action: Check the instance and the network to it.
            // Without client: a balancer counts for all views.
            tracing::warn!(target: "docent::discovery", service = %self.name, instance = %self.id, "an instance keeps failing; setting it aside");
            self.balance.note_set_aside(&self.candidate.load);
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
