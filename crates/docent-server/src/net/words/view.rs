use crate::net::ensemble::Ensemble;
use crate::net::links::Link;
use crate::net::members::{LEADER, Member, MemberId};
use crate::state::State;

/// View that one member has of itself, for a word that came over one of its links.
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
    /// The view of the member that `asking` came in through; `None` when it is gone.
    pub(in crate::net) fn new(ensemble: &'a Ensemble, asking: u64, now: i64) -> Option<Self> {
        let id = ensemble.links.get(asking)?.member;
        let member = ensemble.members.get(id)?;
        Some(Self { ensemble, state: ensemble.state_seen_by(id), id, member, asking, now })
    }

    /// The member.
    pub(in crate::net) fn id(self) -> MemberId {
        self.id
    }

    /// The member's links, in the order they came.
    pub(super) fn links(self) -> impl Iterator<Item = (u64, &'a Link)> {
        self.ensemble.links.iter().filter(move |(_, link)| link.member == self.id)
    }

    /// Requests of its links that wait for an answer.
    pub(super) fn outstanding(self) -> usize {
        self.links().map(|(_, link)| link.outstanding()).sum()
    }

    /// Its place in the ensemble.
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
