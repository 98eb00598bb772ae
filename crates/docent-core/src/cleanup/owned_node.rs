use super::CleanupContext;
use crate::session::{Cause, lookup};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Ephemeral node of one of our sessions.
#[derive(Debug)]
pub(crate) struct OwnedNode {
    pub(crate) context: Arc<CleanupContext>,
    /// Full path.
    pub(crate) path: String,
    /// Transaction that made it; 0 where that is not known.
    pub(crate) czxid: i64,
    pub(super) identity: Identity,
    /// Set by the first handle that sees to its end, so that it is deleted once.
    left: AtomicBool,
}

/// Mark by which a node of ours is told from others at its path.
#[derive(Debug)]
pub(super) enum Identity {
    /// Its name, which is ours alone: the node can be deleted by its name in any session.
    ByName,
    /// Its `czxid`, because others may use the name once it is gone: only its own session may delete it
    /// (decision 8).
    ByCzxid {
        /// Number of lost links when the node was last known to be the same. On that link its own watch tells
        /// of its end.
        confirmed: AtomicU64,
    },
}

impl OwnedNode {
    /// A node whose name is ours alone.
    pub(crate) fn by_name(context: Arc<CleanupContext>, path: String, czxid: i64) -> Self {
        Self { context, path, czxid, identity: Identity::ByName, left: AtomicBool::new(false) }
    }

    /// A node at a path that others may use once it is gone.
    pub(crate) fn by_czxid(context: Arc<CleanupContext>, path: String, czxid: i64) -> Self {
        let identity = Identity::ByCzxid { confirmed: AtomicU64::new(u64::MAX) };
        Self { context, path, czxid, identity, left: AtomicBool::new(false) }
    }

    /// The node as it was made: `losses` is the number of lost links before its create was submitted.
    pub(crate) fn confirmed_at(self, losses: u64) -> Self {
        self.set_confirmed(losses);
        self
    }

    /// Makes the next [`confirm`](Self::confirm) look at the node.
    pub(crate) fn doubt(&self) {
        self.set_confirmed(u64::MAX);
    }

    fn set_confirmed(&self, losses: u64) {
        if let Identity::ByCzxid { confirmed } = &self.identity {
            confirmed.store(losses, Ordering::Relaxed);
        }
    }

    /// True when others may make a node at its path once it is gone.
    pub(crate) fn shares_path(&self) -> bool {
        matches!(self.identity, Identity::ByCzxid { .. })
    }

    /// False when the node at its path, made by the transaction `czxid`, is another one.
    pub(crate) fn is_same(&self, czxid: i64) -> bool {
        planted!(ClaimUnchecked) || !self.shares_path() || self.czxid == czxid
    }

    /// True when the node at its path can only be this one, on the link after `losses` lost ones.
    pub(crate) fn is_confirmed_at(&self, losses: u64) -> bool {
        match &self.identity {
            Identity::ByName => true,
            Identity::ByCzxid { confirmed } => {
                planted!(ClaimUnchecked) || confirmed.load(Ordering::Relaxed) == losses
            }
        }
    }

    /// Looks whether the node is there and the same, unless that is known for the present link. While a link
    /// was lost somebody else may have deleted it, and made another at its path, of which no watch told
    /// (decision 8).
    ///
    /// # Errors
    /// When the session ended before the look.
    pub(crate) async fn confirm(&self) -> Result<bool, Cause> {
        while !self.is_confirmed_at(self.context.losses()) {
            // Read before the look: where the link is lost during it, the node is looked at again.
            let losses = self.context.losses();
            match lookup::stat(&self.context, &self.path).await? {
                Some(stat) if stat.czxid == self.czxid => self.set_confirmed(losses),
                _ => return Ok(false),
            }
        }
        Ok(true)
    }

    /// Lets another handle see to the node's end: it could not be deleted.
    pub(super) fn stays(&self) {
        self.left.store(false, Ordering::Release);
    }

    /// True for the first caller, which then sees to the node's end.
    pub(crate) fn leave(&self) -> bool {
        !self.left.swap(true, Ordering::AcqRel)
    }
}
