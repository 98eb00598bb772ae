use crate::client::generation::SessionGeneration;
use crate::operation::resolve;
use crate::session::Cause;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Node of a claim, told from later ones at its path by `czxid`.
#[derive(Debug)]
pub(crate) struct ClaimNode {
    pub(crate) generation: Arc<SessionGeneration>,
    /// Full path.
    pub(crate) path: String,
    /// Tells it from later claims at the same path.
    pub(crate) czxid: i64,
    /// Set by the first handle that sees to its end, so that it is deleted once.
    left: AtomicBool,
    /// Number of lost links when the node was last known to be the same. On that link its own watch tells of
    /// its end.
    confirmed: AtomicU64,
}

impl ClaimNode {
    pub(crate) fn new(generation: Arc<SessionGeneration>, path: String, czxid: i64) -> Self {
        Self { generation, path, czxid, left: AtomicBool::new(false), confirmed: AtomicU64::new(u64::MAX) }
    }

    /// The node as it was made: `losses` is the number of lost links before its create was submitted.
    pub(crate) fn confirmed_at(self, losses: u64) -> Self {
        self.confirmed.store(losses, Ordering::Relaxed);
        self
    }

    /// Makes the next [`confirm`](Self::confirm) look at the node.
    pub(crate) fn doubt(&self) {
        self.confirmed.store(u64::MAX, Ordering::Relaxed);
    }

    /// True when the node was there, and the same, on the present link.
    pub(crate) fn is_confirmed(&self) -> bool {
        self.is_confirmed_at(self.generation.losses())
    }

    /// True when the node was there, and the same, on the link after `losses` lost ones.
    pub(crate) fn is_confirmed_at(&self, losses: u64) -> bool {
        planted!(ClaimUnchecked) || self.confirmed.load(Ordering::Relaxed) == losses
    }

    /// Looks whether the node is there and the same, unless that is known for the present link. While a link
    /// was lost somebody else may have deleted it, and made another at its path, of which no watch told
    /// (decision 8).
    ///
    /// # Errors
    /// When the session ended before the look.
    pub(crate) async fn confirm(&self) -> Result<bool, Cause> {
        while !self.is_confirmed() {
            // Read before the look: where the link is lost during it, the node is looked at again.
            let losses = self.generation.losses();
            match resolve::stat(&self.generation, &self.path).await? {
                Some(stat) if stat.czxid == self.czxid => self.confirmed.store(losses, Ordering::Relaxed),
                _ => return Ok(false),
            }
        }
        Ok(true)
    }

    /// True for the first caller, which then sees to the node's end.
    pub(crate) fn leave(&self) -> bool {
        !self.left.swap(true, Ordering::AcqRel)
    }
}
