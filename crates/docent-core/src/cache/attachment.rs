use crate::guard::SessionGeneration;
use crate::operation::Shared;
use crate::session::LinkState;
use std::future::pending;
use std::sync::Arc;
use tokio::sync::watch;

/// The present session of a client and its link, as a cache follows them.
pub(super) struct Attachment {
    pub(super) generation: Arc<SessionGeneration>,
    generations: watch::Receiver<Arc<SessionGeneration>>,
    link: watch::Receiver<LinkState>,
    losses: u64,
}

/// News about session and link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct News {
    /// True for another session: the watches of the last one are gone.
    pub(super) session: bool,
    /// True when requests that were under way have no answer.
    pub(super) lost: bool,
    pub(super) up: bool,
}

impl Attachment {
    /// The first news are about the session there is.
    pub(super) fn new(shared: &Shared) -> Self {
        let mut generations = shared.generations.subscribe();
        generations.mark_changed();
        let generation = shared.generation();
        let link = generation.session.link();
        Self { generation, generations, link, losses: 0 }
    }

    /// Waits for the next news. Cancel safe.
    pub(super) async fn news(&mut self) -> News {
        tokio::select! {
            biased;
            Ok(()) = self.generations.changed() => {
                self.generation = Arc::clone(&self.generations.borrow_and_update());
                self.link = self.generation.session.link();
                let link = *self.link.borrow_and_update();
                self.losses = link.losses;
                News { session: true, lost: true, up: link.up }
            }
            Ok(()) = self.link.changed() => {
                let link = *self.link.borrow_and_update();
                let lost = !link.up || link.losses > self.losses;
                self.losses = link.losses;
                News { session: false, lost, up: link.up }
            }
            // Both channels close only with a runtime that shuts down.
            else => pending().await,
        }
    }
}
