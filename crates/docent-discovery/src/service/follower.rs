use super::Instances;
use docent_core::recipe::call_hook;
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// Follower of a view that runs in the view's own task, after each state is shown.
pub(crate) trait Follower<P>: Send + Sync {
    /// Handles the state that is shown now, after the one before.
    fn follow(&self, before: &Instances<P>, shown: &Instances<P>);
}

/// Followers of a view that are not dropped yet.
pub(super) struct Followers<P>(Arc<Mutex<Vec<Weak<dyn Follower<P>>>>>);

impl<P> Followers<P> {
    pub(super) fn new() -> Self {
        Self(Arc::default())
    }

    #[cfg(feature = "tower")]
    pub(super) fn add(&self, follower: Weak<dyn Follower<P>>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(follower);
    }

    /// Notifies all followers. The values that they drop may run user code.
    pub(super) fn notify(&self, service: &str, before: &Instances<P>, shown: &Instances<P>) {
        let mut followers = Vec::new();
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .retain(|follower| follower.upgrade().map(|follower| followers.push(follower)).is_some());
        for follower in followers {
            let _ = call_hook("drop of a connection", service, || follower.follow(before, shown));
        }
    }
}

impl<P> Clone for Followers<P> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}
