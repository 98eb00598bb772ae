//! Requests of a cache that are in flight.

use crate::cache::reads::Read;
use crate::session::{Outcome, Pending};
use futures_util::future::{BoxFuture, FutureExt};
use futures_util::stream::{FuturesOrdered, StreamExt};

/// Maximum total weight of the requests in flight.
const WINDOW: usize = 64;

/// Weight of a request for several nodes; that of any other request is 1.
const HEAVY: usize = 8;

/// Requests in flight. They are answered in the order they were sent, so that the last answer is the newest.
#[derive(Default)]
pub(super) struct InFlight {
    outcomes: FuturesOrdered<BoxFuture<'static, (Read, Outcome)>>,
    weight: usize,
}

impl InFlight {
    /// Returns true if another request may be sent.
    pub(super) fn has_room(&self) -> bool {
        self.weight + HEAVY <= WINDOW
    }

    pub(super) fn push(&mut self, read: Read, pending: Pending) {
        self.weight += weight(&read);
        self.outcomes.push_back(pending.map(move |outcome| (read, outcome)).boxed());
    }

    /// Waits for the next answer; `None` if no request is in flight. Cancel safe.
    pub(super) async fn next(&mut self) -> Option<(Read, Outcome)> {
        let (read, outcome) = self.outcomes.next().await?;
        self.weight -= weight(&read);
        Some((read, outcome))
    }
}

fn weight(read: &Read) -> usize {
    if matches!(read, Read::Several(_) | Read::Watch { .. }) { HEAVY } else { 1 }
}
