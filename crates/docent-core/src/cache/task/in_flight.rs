//! Requests of a cache that are in flight.

use crate::cache::reads::ReadKind;
use crate::session::{Outcome, Pending};
use futures_util::future::{BoxFuture, FutureExt};
use futures_util::stream::{FuturesOrdered, StreamExt};
use std::sync::Arc;

/// Maximum total weight of the requests in flight.
const WINDOW: usize = 64;

/// Weight of a request for several nodes; that of any other request is 1.
const HEAVY: usize = 8;

/// A request of the cache.
pub(super) enum Query {
    /// Reads one node.
    One(Arc<str>, ReadKind),
    Several(Vec<Arc<str>>),
    /// Sets watches and reads nothing.
    Watch(Vec<Arc<str>>),
    /// Waits for the cache's own node to be created.
    Root,
}

impl Query {
    fn weight(&self) -> usize {
        if matches!(self, Self::Several(_) | Self::Watch(_)) { HEAVY } else { 1 }
    }
}

/// Requests in flight. They are answered in the order they were sent, so that the last answer is the newest.
#[derive(Default)]
pub(super) struct InFlight {
    outcomes: FuturesOrdered<BoxFuture<'static, (Query, Outcome)>>,
    weight: usize,
}

impl InFlight {
    /// Returns true if another request may be sent.
    pub(super) fn has_room(&self) -> bool {
        self.weight + HEAVY <= WINDOW
    }

    pub(super) fn push(&mut self, query: Query, pending: Pending) {
        self.weight += query.weight();
        self.outcomes.push_back(pending.map(move |outcome| (query, outcome)).boxed());
    }

    /// Waits for the next answer; `None` if no request is in flight. Cancel safe.
    pub(super) async fn next(&mut self) -> Option<(Query, Outcome)> {
        let (query, outcome) = self.outcomes.next().await?;
        self.weight -= query.weight();
        Some((query, outcome))
    }
}
