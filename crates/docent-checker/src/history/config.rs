use super::builder::HistoryBuilder;
use crate::event::{AttemptId, EventKind, Following, Outcome, Publishing, Way};

/// Number of the follower of a value.
pub(crate) const FOLLOWER: u64 = 902;

/// Events of the publishers and the follower of a value.
pub(crate) trait ConfigEvents {
    /// A client starts to follow a value.
    fn follow(&mut self, client: u32, path: &str) -> &mut Self;

    /// The follower is shown a number, with the transaction that wrote it, if there is one.
    fn saw(&mut self, client: u32, path: &str, number: u64) -> &mut Self;

    /// A client begins a call that changes a value.
    fn publish(&mut self, client: u32, id: u64, path: &str, way: Way) -> &mut Self;

    /// The call returns.
    fn published(&mut self, client: u32, id: u64, outcome: Outcome) -> &mut Self;
}

impl ConfigEvents for HistoryBuilder {
    fn follow(&mut self, client: u32, path: &str) -> &mut Self {
        self.record(client, EventKind::Followed(AttemptId(FOLLOWER), Following::Begins(path.to_owned())))
    }

    fn saw(&mut self, client: u32, path: &str, number: u64) -> &mut Self {
        let zxid = self.written(path, number).unwrap_or_default();
        self.record(client, EventKind::Followed(AttemptId(FOLLOWER), Following::Saw { number, zxid }))
    }

    fn publish(&mut self, client: u32, id: u64, path: &str, way: Way) -> &mut Self {
        let path = path.to_owned();
        self.record(client, EventKind::Published(AttemptId(id), Publishing::Began { path, way }))
    }

    fn published(&mut self, client: u32, id: u64, outcome: Outcome) -> &mut Self {
        self.record(client, EventKind::Published(AttemptId(id), Publishing::Done(outcome)))
    }
}
