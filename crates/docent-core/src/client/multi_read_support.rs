use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

/// Links in a row that were lost with a read of many nodes under way, until that is taken for a refusal.
const SUSPICIOUS: u32 = 3;

/// Knowledge about whether the servers read many nodes in one request. Those before 3.6 refuse that, before
/// they answer earlier requests, and close the link: the refusal itself may be lost with it.
#[derive(Debug, Default)]
pub(crate) struct MultiReadSupport {
    refused: AtomicBool,
    /// Reads lost with their link since the last one that was answered.
    lost: AtomicU32,
}

impl MultiReadSupport {
    /// True once the servers refused, for the client's life.
    pub(crate) fn is_refused(&self) -> bool {
        self.refused.load(Ordering::Relaxed)
    }

    pub(crate) fn refused(&self) {
        self.refused.store(true, Ordering::Relaxed);
    }

    /// Takes note of an answer.
    pub(crate) fn answered(&self) {
        self.lost.store(0, Ordering::Relaxed);
    }

    /// Takes note of a read that was lost with its link.
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
    fn servers_that_let_go_of_each_link_are_not_asked_for_ever() {
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
