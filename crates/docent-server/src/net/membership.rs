use super::hub::Hub;
use super::members::MemberId;
use std::sync::Arc;

/// A follower's membership in the ensemble. Dropping it closes the follower's links and removes the follower.
pub(crate) struct Membership {
    pub(crate) hub: Arc<Hub>,
    pub(crate) id: MemberId,
}

impl Drop for Membership {
    fn drop(&mut self) {
        self.hub.lock().remove_follower(self.id);
    }
}
