use crate::fault::{Armed, Operation};
use docent_proto::Request;
use tokio::sync::watch;

/// What happens in place of the reply to a request that triggered a fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unanswered {
    /// The reply is suppressed, and the link stays open.
    Swallowed,
    /// The link is closed in place of the reply.
    Broken,
}

/// Faults of the server that are active or wait for a request.
#[derive(Debug, Default)]
pub(crate) struct Faults {
    /// Whether new links are closed immediately.
    pub(crate) refuses_links: bool,
    waiting: Vec<Waiting>,
}

/// A fault that waits for its request.
#[derive(Debug)]
struct Waiting {
    operation: Operation,
    path: String,
    /// Number of matching requests until the fault happens, including the one that triggers it.
    remaining: usize,
    fate: Unanswered,
    fired: watch::Sender<bool>,
}

impl Faults {
    /// Adds a fault that happens at the `nth` request from now on that is an `operation` on `path` or a node
    /// below it.
    pub(crate) fn add(&mut self, operation: Operation, path: &str, nth: usize, fate: Unanswered) -> Armed {
        let fired = watch::Sender::new(false);
        let armed = Armed::new(&fired);
        self.waiting.push(Waiting { operation, path: path.to_owned(), remaining: nth, fate, fired });
        armed
    }

    /// Counts a request that is about to be answered. If the request triggers several faults, the one that
    /// was added first happens. The other faults wait for the next request.
    pub(super) fn meet(&mut self, request: &Request) -> Option<Unanswered> {
        let mut due = None;
        for (index, fault) in self.waiting.iter_mut().enumerate() {
            if fault.operation.is_meant(&fault.path, request) {
                fault.remaining = fault.remaining.saturating_sub(1);
                due = due.or((fault.remaining == 0).then_some(index));
            }
        }
        let fault = self.waiting.remove(due?);
        fault.fired.send_replace(true);
        Some(fault.fate)
    }
}
