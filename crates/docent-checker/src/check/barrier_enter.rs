use crate::analysis::Analysis;
use crate::double_barriers::{Member, Room, members};
use crate::journal::ChangeKind;
use crate::journal_replay::{Moment, NodeLife};
use crate::violation::{Found, Invariant, Violation};
use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

/// The nodes of a double barrier's members. `full` contains the moment since which each node was present with
/// enough others. `crowds` contains the times at which enough members were present.
struct Entering<'a> {
    room: Room<'a>,
    full: HashMap<usize, Moment>,
    crowds: Vec<(Moment, Option<Moment>)>,
    /// Times at which the node `ready` was created or written, each with the time at which it was deleted.
    openings: Vec<(Moment, Option<Moment>)>,
}

/// **Entering a double barrier**:
///
/// - No member enters before the required number of members are present at the same time. After that a member
///   enters only while one of these is still present.
/// - A member that is present while enough are, or when the node `ready` is created, enters within the time
///   for a notification and a few round trips. This applies while its link is healthy, and so is that of the
///   member that arrived last, because that member creates `ready`.
///
/// Only nodes with names of members count, and a re-created node is another member. The members need not
/// notice a moment in which enough were present only because one that gave up had not left yet.
pub(super) fn check(analysis: &Analysis<'_>, found: &mut Found) {
    let mut rooms = BTreeMap::<(&str, u32), Entering<'_>>::new();
    for member in members(&analysis.run.events) {
        let entering = rooms.entry((member.path, member.members)).or_insert_with(|| {
            let room = Room::of(&analysis.replay, member.path);
            let (full, crowds) = (room.full(member.members), room.crowds(member.members));
            Entering { room, full, crowds, openings: openings(analysis, member.path) }
        });
        if let Some((at, what)) = wrong(analysis, &member, entering) {
            found.push(Violation::new(Invariant::B1, at, what).client(member.client).path(member.path));
        }
    }
}

fn wrong(
    analysis: &Analysis<'_>,
    member: &Member<'_>,
    entering: &Entering<'_>,
) -> Option<(Duration, String)> {
    let (at, node) = member.entered?;
    let lives: Vec<(usize, &NodeLife)> = entering.room.lives(node, at, analysis.tolerances()).collect();
    if !entering.may_enter(analysis, &lives, at) {
        return Some((at, format!("{} entered before {} members were present:", member.id, member.members)));
    }
    let since = lives.iter().filter_map(|(_, own)| entering.has_to_enter(analysis, member, own)).max()?;
    let due = since + patience(analysis);
    let well = analysis.life(member.client)?.apart.spare(rough_before(analysis, since), due);
    (well && at > due)
        .then(|| (at, format!("{} entered {:?} after all were present:", member.id, at - since)))
}

/// Longest time until a member enters while all links are healthy.
fn patience(analysis: &Analysis<'_>) -> Duration {
    let tolerances = analysis.tolerances();
    tolerances.notification * 2 + tolerances.round_trip * 6 + tolerances.scheduling
}

/// Time since which a link must be healthy to count as healthy at `at`.
fn rough_before(analysis: &Analysis<'_>, at: Duration) -> Duration {
    at.saturating_sub(analysis.tolerances().reconnect)
}

impl Entering<'_> {
    /// Returns true if by `at` one of the lives of the member's node was present with enough others, or with
    /// a node that had been.
    fn may_enter(&self, analysis: &Analysis<'_>, lives: &[(usize, &NodeLife)], at: Duration) -> bool {
        let in_time = |since: &Moment| since.at <= at + analysis.tolerances().grain;
        let was_there = |(index, _): &(usize, &NodeLife)| self.full.get(index).is_some_and(in_time);
        let met = |(_, own): &(usize, &NodeLife)| {
            self.room.nodes.iter().filter(|one| was_there(one)).any(|(other, node)| {
                let from = self.full[other].max(own.created);
                let until = |node: &NodeLife| node.deleted.is_none_or(|deleted| deleted.when > from);
                until(node) && until(own)
            })
        };
        lives.iter().any(|life| was_there(life) || met(life))
    }

    /// Time since which the member's node was present with enough others, or with `ready`, for longer than
    /// the member needs to enter.
    fn has_to_enter(&self, analysis: &Analysis<'_>, member: &Member<'_>, own: &NodeLife) -> Option<Duration> {
        let patience = patience(analysis);
        let lasts = |from: Duration, until: Option<Moment>| {
            let until = until.into_iter().chain(own.deleted.map(|deleted| deleted.when)).min();
            let from = from.max(own.created.at).max(member.arrived);
            until.is_none_or(|until| until.at > from + patience).then_some(from)
        };
        let crowds = self.crowds.iter().filter_map(|(from, until)| Some((from, lasts(from.at, *until)?)));
        let crowds = crowds.filter(|(from, _)| self.last_is_well(analysis, from.max(&&own.created)));
        let crowds = crowds.map(|(_, since)| since);
        let openings = self.openings.iter().filter(|(opened, _)| *opened > own.created);
        crowds.chain(openings.filter_map(|(opened, until)| lasts(opened.at, *until))).min()
    }

    /// Returns true if the link of the member that arrived at `arrived` is healthy, so that this member
    /// counts the others.
    fn last_is_well(&self, analysis: &Analysis<'_>, arrived: &Moment) -> bool {
        let last = self.room.nodes.iter().find(|(_, node)| node.created == *arrived);
        let life = last.and_then(|(_, node)| analysis.life(analysis.client_of(node.owner)?));
        life.is_some_and(|life| {
            life.apart.spare(rough_before(analysis, arrived.at), arrived.at + patience(analysis))
        })
    }
}

fn openings(analysis: &Analysis<'_>, path: &str) -> Vec<(Moment, Option<Moment>)> {
    let mut openings: Vec<(Moment, Option<Moment>)> = Vec::new();
    for change in &analysis.run.journal {
        if change.path.strip_prefix(path).is_none_or(|rest| rest != "/ready") {
            continue;
        }
        let now = Moment { zxid: change.zxid, at: change.at };
        match change.kind {
            ChangeKind::Created | ChangeKind::Set => openings.push((now, None)),
            ChangeKind::Deleted => {
                let open = openings.iter_mut().rev().take_while(|(_, end)| end.is_none());
                open.for_each(|(_, end)| *end = Some(now));
            }
            _ => {}
        }
    }
    openings
}

#[cfg(test)]
mod tests {
    use crate::event::{FaultKind, LinkState};
    use crate::history::{BarrierEvents, HistoryBuilder};
    use crate::violation::Invariant::B1;

    #[test]
    fn members_are_let_in_together() {
        let mut history = HistoryBuilder::new();
        let (one, other) = (history.at(2_100).arrive(0, 2), history.at(2_200).arrive(1, 2));
        history
            .at(2_210)
            .enter(&one)
            .enter(&other)
            .at(2_300)
            .delete_member(&one)
            .delete_member(&other)
            .end(3_000)
            .holds();
    }

    #[test]
    fn a_member_that_enters_before_enough_have_arrived_is_caught() {
        let mut history = HistoryBuilder::new();
        let one = history.at(2_100).arrive(0, 2);
        history.at(2_150).enter(&one);
        let other = history.at(2_200).arrive(1, 2);
        history.at(2_210).enter(&other).end(3_000).breaks(B1);
    }

    #[test]
    fn a_latecomer_enters_while_the_round_lasts() {
        let late = |emptied_first: bool| {
            let mut history = HistoryBuilder::new();
            let (one, other) = (history.at(2_100).arrive(0, 2), history.arrive(1, 2));
            history.at(2_110).enter(&one).enter(&other);
            if emptied_first {
                history.at(2_200).delete_member(&one).delete_member(&other);
            }
            let late = history.at(2_300).arrive(2, 2);
            history.at(2_310).enter(&late).end(3_000)
        };
        late(false).holds();
        late(true).breaks(B1);
    }

    #[test]
    fn a_member_that_enters_too_late_is_caught() {
        let mut history = HistoryBuilder::new();
        let (one, other) = (history.at(2_100).arrive(0, 2), history.arrive(1, 2));
        history.at(2_110).enter(&one).at(9_000).enter(&other).end(9_900).breaks(B1);
    }

    #[test]
    fn a_member_that_enters_an_open_barrier_too_late_is_caught() {
        let mut history = HistoryBuilder::new();
        let (one, other) = (history.at(2_100).arrive(0, 2), history.arrive(1, 2));
        history.at(2_105).open(0).at(2_110).enter(&one).at(2_200).delete_member(&one);
        history.clone().at(2_300).enter(&other).end(9_900).holds();
        history.at(9_000).enter(&other).end(9_900).breaks(B1);
    }

    #[test]
    fn enough_for_a_moment_need_not_be_noticed() {
        let mut history = HistoryBuilder::new();
        let (one, other) = (history.at(2_100).arrive(0, 2), history.arrive(1, 2));
        history.at(2_103).delete_member(&other);
        let last = history.at(9_000).arrive(2, 2);
        history.at(9_010).open(2).enter(&one).enter(&last).end(9_900).holds();
    }

    #[test]
    fn the_last_member_may_be_cut_off() {
        let mut history = HistoryBuilder::new();
        let (one, other) = (history.at(2_100).arrive(0, 2), history.arrive(1, 2));
        history.at(2_101).fault(1, FaultKind::Cut).link(1, LinkState::Suspended);
        history.at(6_000).heal(1, FaultKind::Cut).link(1, LinkState::Connected);
        history.at(6_010).open(1).enter(&one).enter(&other).end(9_900).holds();
    }
}
