//! Requests of a cache of children to the servers.

use super::super::read_queue::Read;
use super::{ChildrenTask, Listing};
use crate::operation::Shared;
use crate::session::{Lane, Outcome, Pending};
use docent_proto::{MultiOp, Request};
use futures_util::future::{BoxFuture, FutureExt};
use futures_util::stream::{FuturesOrdered, StreamExt};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Weight of the requests under way at a time. It leaves room for the folder's own.
const WINDOW: usize = 60;

/// Weight of a read of several children; that of any other request is 1.
const HEAVY: usize = 8;

/// Most children in one read.
const BATCH: usize = 64;

/// A request of the cache.
pub(super) enum Ask {
    List,
    /// Waits for the folder to be created.
    Folder,
    One(Arc<str>),
    Several(Vec<Arc<str>>),
}

impl Ask {
    fn weight(&self) -> usize {
        if matches!(self, Self::Several(_)) { HEAVY } else { 1 }
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
    fn push(&mut self, ask: Ask, pending: Pending) {
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

impl ChildrenTask {
    /// Sends the wanted reads, as far as there is room.
    pub(super) fn ask(&mut self) {
        if !self.up || self.held || self.alarms.busy.is_some() {
            return;
        }
        if self.listing == Listing::Wanted {
            self.listing = Listing::Asked { again: false };
            self.send(Ask::List, Request::GetChildren2 { path: self.full.clone(), watch: true });
        }
        let most = if self.shared.no_multi_read.load(Ordering::Relaxed) { 1 } else { self.batch };
        while self.asked.weight < WINDOW
            && let Some(read) = self.work.next(most)
        {
            match read {
                Read::One { name, watch } => {
                    let path = self.child_path(&name);
                    self.send(Ask::One(name), Request::GetData { path, watch });
                }
                Read::Several(names) => {
                    let read = |name: &Arc<str>| MultiOp::GetData { path: self.child_path(name) };
                    let request = Request::MultiRead(names.iter().map(read).collect());
                    self.send(Ask::Several(names), request);
                }
            }
        }
    }

    /// Asks for the folder, which does not exist, with a watch for its creation.
    pub(super) fn ask_for_folder(&mut self) {
        self.send(Ask::Folder, Request::Exists { path: self.full.clone(), watch: true });
    }

    fn send(&mut self, ask: Ask, request: Request) {
        let pending = self.attachment.generation.session.submit(request, Lane::Call);
        self.asked.push(ask, pending);
    }

    /// Takes back the requests under way, which will be sent again.
    pub(super) fn forget_asked(&mut self) {
        self.asked = Asked::default();
        self.work.forget_asked();
        if let Listing::Asked { .. } = self.listing {
            self.listing = Listing::Wanted;
        }
    }

    /// Halves the number of children in one read. A reply that is larger than this client takes ends the
    /// link, as other causes do: so a read that was lost with its link is tried with fewer children.
    pub(super) fn smaller_batches(&mut self) {
        self.batch = (self.batch / 2).max(1);
    }

    fn child_path(&self, name: &str) -> String {
        match self.full.as_str() {
            "/" => format!("/{name}"),
            full => format!("{full}/{name}"),
        }
    }
}

/// Number of children that fit into a reply for certain, each as large as the servers take it.
pub(super) fn most_in_a_reply(shared: &Shared) -> usize {
    const HEADER_AND_STAT: usize = 256;
    (shared.config.max_reply / (shared.config.max_request + HEADER_AND_STAT)).clamp(1, BATCH)
}
