//! Requests of a cache that are under way.

use crate::cache::reads::Look;
use crate::session::{Outcome, Pending};
use futures_util::future::{BoxFuture, FutureExt};
use futures_util::stream::{FuturesOrdered, StreamExt};
use std::sync::Arc;

/// Maximum weight of the requests under way at a time.
const WINDOW: usize = 64;

/// Weight of a request for several nodes; that of any other request is 1.
const HEAVY: usize = 8;

/// A request of the cache.
pub(super) enum Ask {
    /// Reads one node.
    One(Arc<str>, Look),
    Several(Vec<Arc<str>>),
    /// Sets watches and reads nothing.
    Watch(Vec<Arc<str>>),
    /// Waits for the cache's own node to be created.
    Root,
}

impl Ask {
    fn weight(&self) -> usize {
        if matches!(self, Self::Several(_) | Self::Watch(_)) { HEAVY } else { 1 }
    }
}

/// Requests under way. They are answered in the order they were sent, so that the last answer is the newest.
#[derive(Default)]
pub(super) struct Asked {
    outcomes: FuturesOrdered<BoxFuture<'static, (Ask, Outcome)>>,
    weight: usize,
}

impl Asked {
    /// True while another request may be sent.
    pub(super) fn has_room(&self) -> bool {
        self.weight + HEAVY <= WINDOW
    }

    pub(super) fn push(&mut self, ask: Ask, pending: Pending) {
        self.weight += ask.weight();
        self.outcomes.push_back(pending.map(move |outcome| (ask, outcome)).boxed());
    }

    /// The next answer; `None` when no request is under way. Cancel safe.
    pub(super) async fn next(&mut self) -> Option<(Ask, Outcome)> {
        let (ask, outcome) = self.outcomes.next().await?;
        self.weight -= ask.weight();
        Some((ask, outcome))
    }
}
