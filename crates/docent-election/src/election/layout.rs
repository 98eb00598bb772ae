use std::fmt;

/// Layout of the candidates' nodes, which determines which of Curator's recipes share the line.
///
/// All candidates of an election need the same layout. A candidate that finds a candidate of the other layout
/// ahead of it is refused with [`MixedKinds`](docent_core::ErrorKind::MixedKinds), so Docent candidates of
/// two layouts never lead at the same time. Curator's recipes do not check this: a Curator candidate may lead
/// although a candidate of another layout that came first also leads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum ElectionLayout {
    /// Layout of Curator's `LeaderLatch`: nodes `_c_<uuid>-latch-<number>` that hold the id, or no data if
    /// there is no id.
    #[default]
    LeaderLatch,
    /// Layout of Curator's `LeaderSelector` and `InterProcessMutex`: nodes `_c_<uuid>-lock-<number>` that
    /// hold the id, or the client's identity if there is no id.
    LeaderSelector,
}

impl ElectionLayout {
    /// Returns the text before the number in a candidate's name.
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
