use super::Contender;
use docent_core::Fence;
use serde::Serialize;

/// Leader and candidates of an election.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Election {
    /// Layout of the candidates.
    pub layout: ElectionLayout,
    /// First candidate, which leads unless it has lost its session.
    pub leader: Option<Contender>,
    /// Other candidates, the next one first.
    pub candidates: Vec<Contender>,
    /// Term that a leader wrote into the election's node and has not resigned, if a takeover delay is set. It
    /// is the term of the current leader, or of one that was lost.
    pub term: Option<Fence>,
}

/// Layout of an election. Serialized as `leader_latch` and `leader_selector`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ElectionLayout {
    /// Curator's `LeaderLatch`, the default layout of Docent's elections.
    LeaderLatch,
    /// Curator's `LeaderSelector`: it uses the node names of a mutex, and is distinguished from one by the
    /// ids in the nodes.
    LeaderSelector,
}
