use crate::fault::{Armed, Operation};
use docent_proto::Request;
use tokio::sync::watch;

/// Fate of the reply to a request that a fault was waiting for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unanswered {
    /// It is left out, and the link goes on.
    Swallowed,
    /// The link is closed in its place.
    Broken,
}

/// Faults of the server that wait for something, or last.
#[derive(Debug, Default)]
pub(crate) struct Faults {
    /// New links are closed at once.
    pub(crate) refuses_links: bool,
    waiting: Vec<Waiting>,
}

/// Fault that waits for its request.
#[derive(Debug)]
struct Waiting {
    operation: Operation,
    path: String,
    /// Number of such requests up to and with its own.
    left: usize,
    fate: Unanswered,
    fired: watch::Sender<bool>,
}

impl Faults {
    /// Adds a fault at the `nth` request of a kind about a node at `path` or below it, from here on.
    pub(crate) fn add(&mut self, operation: Operation, path: &str, nth: usize, fate: Unanswered) -> Armed {
        let fired = watch::Sender::new(false);
        let armed = Armed::new(&fired);
        self.waiting.push(Waiting { operation, path: path.to_owned(), left: nth, fate, fired });
        armed
    }

    /// Counts a request that is about to be answered. Of several faults that it completes, the one that was
    /// added first happens, and the others wait for the next request.
    pub(super) fn meet(&mut self, request: &Request) -> Option<Unanswered> {
        let mut due = None;
        for (index, fault) in self.waiting.iter_mut().enumerate() {
            if fault.operation.is_meant(&fault.path, request) {
                fault.left = fault.left.saturating_sub(1);
                due = due.or((fault.left == 0).then_some(index));
            }
        }
        let fault = self.waiting.remove(due?);
        fault.fired.send_replace(true);
        Some(fault.fate)
    }
}
