use std::fmt;

/// Layout of candidates in the tree, which decides with which of Curator's recipes they stand in one line.
///
/// All candidates of an election need the same layout. One that finds a candidate of the other layout before
/// it is refused with [`MixedKinds`](docent_core::ErrorKind::MixedKinds), so that two layouts never both have
/// a leader. Curator's recipes do not look: they lead beside candidates that came before them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum ElectionLayout {
    /// As Curator's `LeaderLatch`: nodes `_c_<uuid>-latch-<number>` that hold the id, or nothing without one.
    #[default]
    LeaderLatch,
    /// As Curator's `LeaderSelector`, and its `InterProcessMutex`: nodes `_c_<uuid>-lock-<number>` that hold
    /// the id, or the client's identity without one.
    LeaderSelector,
}

impl ElectionLayout {
    /// Text before the number in a candidate's name.
    pub(crate) fn marker(self) -> &'static str {
        match self {
            Self::LeaderLatch => "latch-",
            Self::LeaderSelector => "lock-",
        }
    }
}

impl fmt::Display for ElectionLayout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::LeaderLatch => "leader latch",
            Self::LeaderSelector => "leader selector",
        })
    }
}
