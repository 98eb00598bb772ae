/// Whether the node of a released guard is known to be deleted.
///
/// A release that takes longer than the operation timeout is not an error: the guard is released, and only
/// its node remains for now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Released {
    /// The release is complete: the node is deleted. If other guards of the same hold remain, only this guard
    /// is released.
    Done,
    /// The deadline passed, or the lease ended, before the servers answered. The client keeps deleting the
    /// node in the background. The next holder waits until the node is deleted or the session has expired.
    Pending,
}

impl Released {
    /// Returns true if the node is not known to be deleted yet.
    pub fn is_pending(self) -> bool {
        self == Self::Pending
    }

    /// Combines the releases of several nodes: `Pending` if one of them is.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        match self {
            Self::Done => other,
            Self::Pending => Self::Pending,
        }
    }
}

/// Combines any number of releases; none are `Done`.
impl FromIterator<Self> for Released {
    fn from_iter<I: IntoIterator<Item = Self>>(releases: I) -> Self {
        releases.into_iter().fold(Self::Done, Self::and)
    }
}
