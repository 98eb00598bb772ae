use bytes::Bytes;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Largest node data in bytes that is rewritten to record the beginning.
const LONGEST: usize = 1_024;

/// Records in the hold's own node when the hold began: the client rewrites the node's data unchanged,
/// provided the node was not modified since (decision 15). The servers store the time of that write.
#[derive(Debug)]
pub(crate) struct Beginning {
    data: Arc<Bytes>,
    /// True once nothing is left to write.
    settled: AtomicBool,
}

impl Beginning {
    /// Beginning of a hold whose node was created with `data` before the hold began.
    pub(crate) fn of(data: Arc<Bytes>) -> Self {
        let settled = AtomicBool::new(data.len() > LONGEST);
        Self { data, settled }
    }

    /// Beginning of a hold that began when its node was created, which the servers have recorded.
    pub(crate) fn at_creation() -> Self {
        Self { data: Arc::default(), settled: AtomicBool::new(true) }
    }

    /// Returns the data to write, or `None` once nothing is left to write.
    pub(crate) fn unrecorded(&self) -> Option<&Bytes> {
        (!self.settled.load(Ordering::Relaxed)).then_some(&self.data)
    }

    /// Marks the beginning as recorded, or as impossible to record.
    pub(crate) fn settle(&self) {
        self.settled.store(true, Ordering::Relaxed);
    }
}
