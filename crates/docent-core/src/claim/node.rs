use crate::epoch::Epoch;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The node of a claim.
#[derive(Debug)]
pub(crate) struct ClaimNode {
    pub(crate) epoch: Arc<Epoch>,
    /// Full path.
    pub(crate) path: String,
    /// Tells it from later claims at the same path.
    pub(crate) czxid: i64,
    /// Set once somebody sees to its end: it is deleted once.
    left: AtomicBool,
}

impl ClaimNode {
    pub(crate) fn new(epoch: Arc<Epoch>, path: String, czxid: i64) -> Self {
        Self { epoch, path, czxid, left: AtomicBool::new(false) }
    }

    /// True for the first who asks, who then sees to its end.
    pub(crate) fn leave(&self) -> bool {
        !self.left.swap(true, Ordering::AcqRel)
    }
}
