use super::Contender;
use docent_core::Fence;
use serde::Serialize;

/// Leader and candidates of an election.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Election {
    /// Layout of the candidates.
    pub layout: ElectionLayout,
    /// The first candidate, which leads unless it has lost its session.
    pub leader: Option<Contender>,
    /// The other candidates, the next one first.
    pub candidates: Vec<Contender>,
    /// The term that a leader wrote into the election's node and did not resign, where a takeover delay is
    /// set: that of the leader, or of one that was lost.
    pub term: Option<Fence>,
}

/// Layout of an election. Serialized as `leader_latch` and `leader_selector`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ElectionLayout {
    /// Curator's `LeaderLatch`, which Docent's elections have by default.
    LeaderLatch,
    /// Curator's `LeaderSelector`: names of a mutex, told from one by the ids that they hold.
    LeaderSelector,
}
