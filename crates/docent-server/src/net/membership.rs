use super::hub::Hub;
use super::members::MemberId;
use std::sync::Arc;

/// A follower's place in the ensemble. On drop: its links are closed, and it is no longer a member.
pub(crate) struct Membership {
    pub(crate) hub: Arc<Hub>,
    pub(crate) id: MemberId,
}

impl Drop for Membership {
    fn drop(&mut self) {
        self.hub.lock().remove_follower(self.id);
    }
}
