use crate::analysis::Analysis;
use crate::double_barriers::{Member, Room, members};
use crate::journal::ChangeKind;
use crate::journal_replay::{Moment, NodeLife};
use crate::violation::{Found, Invariant, Violation};
use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

/// Members of a room, the time since when each node was one with enough others, and the times at which enough
/// were there.
struct Entering<'a> {
    room: Room<'a>,
    full: HashMap<usize, Moment>,
    crowds: Vec<(Moment, Option<Moment>)>,
    /// Times at which the door was opened, also over an earlier opening, each with the time until when it was
    /// open.
    openings: Vec<(Moment, Option<Moment>)>,
}

/// **The way into a double barrier**: nobody is let in before as many members are there at the same time as
/// were asked for; after that a member is let in while one of those is still there. A member that is there
/// while enough are, or when the door is opened, is let in as soon as news and a few round trips allow, while
/// its link is well, and so is that of the member that came last: it opens the door.
///
/// Only nodes that are named as members are count; a node that was made anew is another one. A moment in
/// which there were enough only because a member that gave up was still there need not be noticed.
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
        return Some((at, format!("{} was let in before {} were there:", member.id, member.members)));
    }
    let since = lives.iter().filter_map(|(_, own)| entering.has_to_enter(analysis, member, own)).max()?;
    let due = since + patience(analysis);
    let well = analysis.life(member.client)?.apart.spare(rough_before(analysis, since), due);
    (well && at > due)
        .then(|| (at, format!("{} was let in {:?} after all were there:", member.id, at - since)))
}

/// Longest time until a member is let in while all is well.
fn patience(analysis: &Analysis<'_>) -> Duration {
    let tolerances = analysis.tolerances();
    tolerances.news * 2 + tolerances.round_trip * 6 + tolerances.scheduling
}

/// Time from which on a link has to be well so that it counts as well at `at`.
fn rough_before(analysis: &Analysis<'_>, at: Duration) -> Duration {
    at.saturating_sub(analysis.tolerances().reconnect)
}

impl Entering<'_> {
    /// True when one of the lives of its node was there with enough others by `at`, or with a node that had
    /// been.
    fn may_enter(&self, analysis: &Analysis<'_>, lives: &[(usize, &NodeLife)], at: Duration) -> bool {
        let in_time = |since: &Moment| since.at <= at + analysis.tolerances().grain;
        let was_there = |(index, _): &(usize, &NodeLife)| self.full.get(index).is_some_and(in_time);
        let met = |(_, own): &(usize, &NodeLife)| {
            self.room.nodes.iter().filter(|one| was_there(one)).any(|(other, node)| {
                let from = self.full[other].max(own.created);
                let until = |node: &NodeLife| node.gone.is_none_or(|gone| gone.when > from);
                until(node) && until(own)
            })
        };
        lives.iter().any(|life| was_there(life) || met(life))
    }

    /// Time since when its node was there with enough others, or with a door that had been opened, for so
    /// long that it had to be let in.
    fn has_to_enter(&self, analysis: &Analysis<'_>, member: &Member<'_>, own: &NodeLife) -> Option<Duration> {
        let patience = patience(analysis);
        let lasts = |from: Duration, until: Option<Moment>| {
            let until = until.into_iter().chain(own.gone.map(|gone| gone.when)).min();
            let from = from.max(own.created.at).max(member.came);
            until.is_none_or(|until| until.at > from + patience).then_some(from)
        };
        let crowds = self.crowds.iter().filter_map(|(from, until)| Some((from, lasts(from.at, *until)?)));
        let crowds = crowds.filter(|(from, _)| self.last_is_well(analysis, from.max(&&own.created)));
        let crowds = crowds.map(|(_, since)| since);
        let openings = self.openings.iter().filter(|(opened, _)| *opened > own.created);
        crowds.chain(openings.filter_map(|(opened, until)| lasts(opened.at, *until))).min()
    }

    /// True when the link of the member that came then is well, so that it looks.
    fn last_is_well(&self, analysis: &Analysis<'_>, came: &Moment) -> bool {
        let last = self.room.nodes.iter().find(|(_, node)| node.created == *came);
        let life = last.and_then(|(_, node)| analysis.life(analysis.client_of(node.owner)?));
        life.is_some_and(|life| {
            life.apart.spare(rough_before(analysis, came.at), came.at + patience(analysis))
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
        let (one, other) = (history.at(2_100).come(0, 2), history.at(2_200).come(1, 2));
        history.at(2_210).enter(&one).enter(&other).at(2_300).gone(&one).gone(&other).end(3_000).holds();
    }

    #[test]
    fn who_is_let_in_early_is_caught() {
        let mut history = HistoryBuilder::new();
        let one = history.at(2_100).come(0, 2);
        history.at(2_150).enter(&one);
        let other = history.at(2_200).come(1, 2);
        history.at(2_210).enter(&other).end(3_000).breaks(B1);
    }

    #[test]
    fn who_comes_late_is_let_in_while_others_are_in() {
        let late = |gone_first: bool| {
            let mut history = HistoryBuilder::new();
            let (one, other) = (history.at(2_100).come(0, 2), history.come(1, 2));
            history.at(2_110).enter(&one).enter(&other);
            if gone_first {
                history.at(2_200).gone(&one).gone(&other);
            }
            let late = history.at(2_300).come(2, 2);
            history.at(2_310).enter(&late).end(3_000)
        };
        late(false).holds();
        late(true).breaks(B1);
    }

    #[test]
    fn who_is_held_up_is_caught() {
        let mut history = HistoryBuilder::new();
        let (one, other) = (history.at(2_100).come(0, 2), history.come(1, 2));
        history.at(2_110).enter(&one).at(9_000).enter(&other).end(9_900).breaks(B1);
    }

    #[test]
    fn who_is_held_up_at_an_open_door_is_caught() {
        let mut history = HistoryBuilder::new();
        let (one, other) = (history.at(2_100).come(0, 2), history.come(1, 2));
        history.at(2_105).open(0).at(2_110).enter(&one).at(2_200).gone(&one);
        history.clone().at(2_300).enter(&other).end(9_900).holds();
        history.at(9_000).enter(&other).end(9_900).breaks(B1);
    }

    #[test]
    fn enough_for_a_moment_need_not_be_noticed() {
        let mut history = HistoryBuilder::new();
        let (one, other) = (history.at(2_100).come(0, 2), history.come(1, 2));
        history.at(2_103).gone(&other);
        let last = history.at(9_000).come(2, 2);
        history.at(9_010).open(2).enter(&one).enter(&last).end(9_900).holds();
    }

    #[test]
    fn the_one_who_came_last_may_be_the_one_that_is_cut_off() {
        let mut history = HistoryBuilder::new();
        let (one, other) = (history.at(2_100).come(0, 2), history.come(1, 2));
        history.at(2_101).fault(1, FaultKind::Cut).link(1, LinkState::Suspended);
        history.at(6_000).heal(1, FaultKind::Cut).link(1, LinkState::Connected);
        history.at(6_010).open(1).enter(&one).enter(&other).end(9_900).holds();
    }
}
