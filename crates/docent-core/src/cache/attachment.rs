use crate::guard::SessionGeneration;
use crate::operation::Shared;
use crate::session::LinkState;
use std::future::pending;
use std::sync::Arc;
use tokio::sync::watch;

/// The current session of a client and its link, as followed by a cache.
pub(super) struct Attachment {
    pub(super) generation: Arc<SessionGeneration>,
    generations: watch::Receiver<Arc<SessionGeneration>>,
    link: watch::Receiver<LinkState>,
    losses: u64,
}

/// A change of session or link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SessionChange {
    /// True for a new session: the watches of the previous session no longer exist.
    pub(super) session: bool,
    /// True if requests in flight will get no answer.
    pub(super) lost: bool,
    pub(super) up: bool,
}

impl Attachment {
    /// Starts with the current session, which is the first change to be reported.
    pub(super) fn new(shared: &Shared) -> Self {
        let mut generations = shared.generations.subscribe();
        generations.mark_changed();
        let generation = shared.generation();
        let link = generation.session.link();
        Self { generation, generations, link, losses: 0 }
    }

    /// Waits for the next change. Cancel safe.
    pub(super) async fn changed(&mut self) -> SessionChange {
        tokio::select! {
            biased;
            Ok(()) = self.generations.changed() => {
                self.generation = Arc::clone(&self.generations.borrow_and_update());
                self.link = self.generation.session.link();
                let link = *self.link.borrow_and_update();
                self.losses = link.losses;
                SessionChange { session: true, lost: true, up: link.up }
            }
            Ok(()) = self.link.changed() => {
                let link = *self.link.borrow_and_update();
                let lost = !link.up || link.losses > self.losses;
                self.losses = link.losses;
                SessionChange { session: false, lost, up: link.up }
            }
            // Both channels close only when the runtime shuts down.
            else => pending().await,
        }
    }
}
