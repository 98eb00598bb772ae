use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

/// Number of consecutive links lost during a read of many nodes that counts as a refusal.
const SUSPICIOUS: u32 = 3;

/// Whether the servers can read many nodes in one request. Servers before 3.6 refuse such a request before
/// they answer earlier requests, and close the link. The refusal itself may be lost with the link.
#[derive(Debug, Default)]
pub(crate) struct MultiReadSupport {
    refused: AtomicBool,
    /// Number of reads lost with their link since the last answered one.
    lost: AtomicU32,
}

impl MultiReadSupport {
    /// Returns true once the servers have refused; this holds for the client's lifetime.
    pub(crate) fn is_refused(&self) -> bool {
        self.refused.load(Ordering::Relaxed)
    }

    pub(crate) fn refused(&self) {
        self.refused.store(true, Ordering::Relaxed);
    }

    /// Records an answer.
    pub(crate) fn answered(&self) {
        self.lost.store(0, Ordering::Relaxed);
    }

    /// Records a read that was lost with its link.
    pub(crate) fn lost(&self) {
        if self.lost.fetch_add(1, Ordering::Relaxed) + 1 >= SUSPICIOUS {
            self.refused();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_that_drop_each_link_count_as_refusing() {
        let support = MultiReadSupport::default();
        support.lost();
        support.lost();
        support.answered();
        support.lost();
        support.lost();
        assert!(!support.is_refused(), "a link may be lost for any reason");
        support.lost();
        assert!(support.is_refused());
    }
}
