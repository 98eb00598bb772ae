use crate::node::CreateMode;
use docent_proto::Stat;
use std::time::Duration;
use tokio::time::Instant;

/// Life of a kept node: as long as a session, or until it is deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Life(CreateMode);

impl Life {
    pub(super) const EPHEMERAL: Self = Self(CreateMode::Ephemeral);

    /// The life of a node that was made as `mode`. It is made again as this, with the same name.
    pub(super) fn of(mode: CreateMode) -> Self {
        Self(match mode {
            CreateMode::EphemeralSequential => CreateMode::Ephemeral,
            CreateMode::PersistentSequential => CreateMode::Persistent,
            CreateMode::PersistentSequentialTtl(ttl) => CreateMode::PersistentTtl(ttl),
            other => other,
        })
    }

    pub(super) fn mode(self) -> CreateMode {
        self.0
    }

    pub(super) fn is_ephemeral(self) -> bool {
        self == Self::EPHEMERAL
    }

    /// The owner that its node has in the session `present`; 0 for none.
    pub(super) fn owner(self, present: i64) -> i64 {
        if self.is_ephemeral() { present } else { 0 }
    }

    pub(super) fn ttl(self) -> Option<Duration> {
        match self.0 {
            CreateMode::PersistentTtl(ttl) => Some(ttl),
            _ => None,
        }
    }
}

/// Time without a change by others after which a contest is over.
const CALM: Duration = Duration::from_secs(60);

/// Changes of a node that others make against what is wanted.
#[derive(Debug, Default)]
pub(super) struct Contest {
    last: Option<Instant>,
    /// The node as it was seen last: transactions that made and changed it.
    seen: Option<(i64, i64)>,
}

impl Contest {
    pub(super) fn is_over(&self) -> bool {
        self.last.is_none_or(|last| last.elapsed() > CALM)
    }

    /// Takes note of a look at the node. True when its data was changed by others since the last look, the
    /// first time that this is seen.
    pub(super) fn seen(&mut self, stat: &Stat, is_as_wanted: bool) -> bool {
        let version = (stat.czxid, stat.mzxid);
        let is_news = self.seen.replace(version).is_some_and(|seen| seen != version);
        let is_changed = is_news && !is_as_wanted;
        if is_changed {
            self.last = Some(Instant::now());
        }
        is_changed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_by_others_is_told_once() {
        let stat = |mzxid| Stat { czxid: 1, mzxid, ..Stat::default() };
        let mut contest = Contest::default();
        assert!(!contest.seen(&stat(1), false), "it was so before");
        assert!(!contest.seen(&stat(2), true) && contest.is_over());
        assert!(contest.seen(&stat(3), false) && !contest.is_over());
        assert!(!contest.seen(&stat(3), false), "the pause is over");
    }

    #[test]
    fn a_sequential_node_is_made_again_with_its_number() {
        let ttl = Duration::from_secs(2);
        assert!(Life::of(CreateMode::EphemeralSequential).is_ephemeral());
        assert_eq!(Life::of(CreateMode::PersistentSequential).mode(), CreateMode::Persistent);
        assert_eq!(Life::of(CreateMode::PersistentSequentialTtl(ttl)).ttl(), Some(ttl));
    }
}
