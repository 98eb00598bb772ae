use crate::session::SessionEnd;

/// Phase of a session. A session never returns to an earlier phase.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    Open,
    /// No more calls are accepted.
    Draining,
    /// The session is closed once nothing waits.
    Closing,
    Ended(SessionEnd),
}

impl Phase {
    fn rank(self) -> u8 {
        match self {
            Self::Open => 0,
            Self::Draining => 1,
            Self::Closing => 2,
            Self::Ended(_) => 3,
        }
    }

    pub(super) fn is_before(self, other: Self) -> bool {
        self.rank() < other.rank()
    }
}
