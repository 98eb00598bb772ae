use super::Sketch;
use crate::event::{AttemptId, Following, Outcome, Publishing, Way, What};

/// Number of the follower of a value.
pub(crate) const FOLLOWER: u64 = 902;

impl Sketch {
    /// Somebody follows a value.
    pub(crate) fn follow(&mut self, client: u32, path: &str) -> &mut Self {
        self.tell(client, What::Followed(AttemptId(FOLLOWER), Following::Begins(path.to_owned())))
    }

    /// It is shown a number, with the transaction that wrote it, if one did.
    pub(crate) fn saw(&mut self, client: u32, path: &str, number: u64) -> &mut Self {
        let zxid = self.written(path, number).unwrap_or_default();
        self.tell(client, What::Followed(AttemptId(FOLLOWER), Following::Saw { number, zxid }))
    }

    /// A call that changes a value.
    pub(crate) fn publish(&mut self, client: u32, id: u64, path: &str, way: Way) -> &mut Self {
        let path = path.to_owned();
        self.tell(client, What::Published(AttemptId(id), Publishing::Began { path, way }))
    }

    /// It returns.
    pub(crate) fn published(&mut self, client: u32, id: u64, outcome: Outcome) -> &mut Self {
        self.tell(client, What::Published(AttemptId(id), Publishing::Done(outcome)))
    }
}
