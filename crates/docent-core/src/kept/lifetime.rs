use crate::node::CreateMode;
use docent_proto::Stat;
use std::time::Duration;
use tokio::time::Instant;

/// Lifetime of a kept node: that of a session, or until the node is deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Lifetime(CreateMode);

impl Lifetime {
    pub(super) const EPHEMERAL: Self = Self(CreateMode::Ephemeral);

    /// Returns the lifetime of a node created with `mode`. The node is re-created with this lifetime and the
    /// same name.
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

    /// The owner that the node has in the session `present`; 0 if it belongs to no session.
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

/// Time without a change by another client after which a contest is over.
const CALM: Duration = Duration::from_secs(60);

/// Changes that other clients make to a node against the wanted state.
#[derive(Debug, Default)]
pub(super) struct ForeignWrites {
    last: Option<Instant>,
    /// Transactions that created and last changed the node, as of the last read.
    last_seen: Option<(i64, i64)>,
}

impl ForeignWrites {
    pub(super) fn is_calm(&self) -> bool {
        self.last.is_none_or(|last| last.elapsed() > CALM)
    }

    /// Records a read of the node. Returns true the first time that a change of the data by another client is
    /// seen.
    pub(super) fn observe(&mut self, stat: &Stat, is_as_desired: bool) -> bool {
        let version = (stat.czxid, stat.mzxid);
        let is_new = self.last_seen.replace(version).is_some_and(|seen| seen != version);
        let is_changed = is_new && !is_as_desired;
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
    fn a_write_of_another_client_is_reported_once() {
        let stat = |mzxid| Stat { czxid: 1, mzxid, ..Stat::default() };
        let mut foreign_writes = ForeignWrites::default();
        assert!(!foreign_writes.observe(&stat(1), false), "the first read is no change");
        assert!(!foreign_writes.observe(&stat(2), true) && foreign_writes.is_calm());
        assert!(foreign_writes.observe(&stat(3), false) && !foreign_writes.is_calm());
        assert!(!foreign_writes.observe(&stat(3), false), "the same change is reported once");
    }

    #[test]
    fn a_sequential_node_is_re_created_with_its_number() {
        let ttl = Duration::from_secs(2);
        assert!(Lifetime::of(CreateMode::EphemeralSequential).is_ephemeral());
        assert_eq!(Lifetime::of(CreateMode::PersistentSequential).mode(), CreateMode::Persistent);
        assert_eq!(Lifetime::of(CreateMode::PersistentSequentialTtl(ttl)).ttl(), Some(ttl));
    }
}
