use crate::Dialect;
use crate::net::ensemble::Ensemble;
use crate::net::links::Link;
use crate::net::members::{LEADER, Member, MemberId};
use crate::state::State;

/// A member's view of itself, for a four-letter word received on one of its links.
#[derive(Clone, Copy)]
pub(in crate::net) struct View<'a> {
    pub(super) ensemble: &'a Ensemble,
    pub(super) state: &'a State,
    pub(super) id: MemberId,
    pub(super) member: &'a Member,
    /// The link that asked.
    pub(super) asking: u64,
    pub(super) now: i64,
}

impl<'a> View<'a> {
    /// Creates the view of the member that accepted link `asking`; `None` if the link or the member no longer
    /// exists.
    pub(in crate::net) fn new(ensemble: &'a Ensemble, asking: u64, now: i64) -> Option<Self> {
        let id = ensemble.links.get(asking)?.member;
        let member = ensemble.members.get(id)?;
        Some(Self { ensemble, state: ensemble.state_seen_by(id), id, member, asking, now })
    }

    /// Returns the id of the member.
    pub(in crate::net) fn id(self) -> MemberId {
        self.id
    }

    /// Returns the dialect of the member.
    pub(super) fn dialect(self) -> Dialect {
        self.ensemble.members.dialect(self.id)
    }

    /// Iterates over the member's links, in order of arrival.
    pub(super) fn links(self) -> impl Iterator<Item = (u64, &'a Link)> {
        self.ensemble.links.iter().filter(move |(_, link)| link.member == self.id)
    }

    /// Returns the number of requests on the member's links that wait for an answer.
    pub(super) fn outstanding(self) -> usize {
        self.links().map(|(_, link)| link.outstanding()).sum()
    }

    /// Returns the mode of the member, as ZooKeeper prints it.
    pub(super) fn mode(self) -> &'static str {
        if self.state.is_read_only() {
            return "read-only";
        }
        match (self.id, self.ensemble.members.count()) {
            (LEADER, 1) => "standalone",
            (LEADER, _) => "leader",
            _ => "follower",
        }
    }
}
