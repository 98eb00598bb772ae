//! Requests of a cache of children that are under way.

use crate::session::{Outcome, Pending};
use futures_util::future::{BoxFuture, FutureExt};
use futures_util::stream::{FuturesOrdered, StreamExt};
use std::sync::Arc;

/// Weight of the requests under way at a time. It leaves room for the folder's own.
const WINDOW: usize = 60;

/// Weight of a read of several children; that of any other request is 1.
const HEAVY: usize = 8;

/// A request of the cache.
pub(super) enum Ask {
    List,
    /// Waits for the folder to be created.
    Folder,
    One(Arc<str>),
    Several(Vec<Arc<str>>),
    /// Sets watches and reads nothing.
    Watch(Vec<Arc<str>>),
}

impl Ask {
    fn weight(&self) -> usize {
        if matches!(self, Self::Several(_) | Self::Watch(_)) { HEAVY } else { 1 }
    }
}

/// Requests under way. They are answered in the order they were sent, so that the answer told last is the
/// newest.
#[derive(Default)]
pub(super) struct Asked {
    outcomes: FuturesOrdered<BoxFuture<'static, (Ask, Outcome)>>,
    weight: usize,
}

impl Asked {
    /// True while another request may be sent.
    pub(super) fn has_room(&self) -> bool {
        self.weight < WINDOW
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
