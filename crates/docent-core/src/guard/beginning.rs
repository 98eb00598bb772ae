use bytes::Bytes;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Longest data in bytes that is written once more to record the beginning.
const LONGEST: usize = 1_024;

/// Record of the time at which a hold began, in the hold's own node: its data is written once more, as it is,
/// while nobody has changed the node (decision 15). The servers note the time of that.
#[derive(Debug)]
pub(crate) struct Beginning {
    data: Arc<Bytes>,
    /// Set once nothing is left to write.
    settled: AtomicBool,
}

impl Beginning {
    /// Of a hold by a node that was made with `data` before the hold began.
    pub(crate) fn of(data: Arc<Bytes>) -> Self {
        let settled = AtomicBool::new(data.len() > LONGEST);
        Self { data, settled }
    }

    /// Of a hold that began when its node was made: the servers noted that.
    pub(crate) fn is_creation() -> Self {
        Self { data: Arc::default(), settled: AtomicBool::new(true) }
    }

    /// The data to write; `None` once nothing is left to write.
    pub(crate) fn unrecorded(&self) -> Option<&Bytes> {
        (!self.settled.load(Ordering::Relaxed)).then_some(&self.data)
    }

    /// It is recorded, or cannot be.
    pub(crate) fn settle(&self) {
        self.settled.store(true, Ordering::Relaxed);
    }
}
