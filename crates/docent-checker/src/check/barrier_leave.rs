use crate::analysis::Analysis;
use crate::double_barriers::{Member, Room, members};
use crate::journal::ChangeKind;
use crate::journal_replay::NodeLife;
use crate::violation::{Found, Invariant, Violation};
use std::collections::BTreeMap;
use std::time::Duration;

/// **Leaving a double barrier**: a member has left only after the nodes of all members were deleted that
/// entered with it and were present when it began to leave. The node of a crashed member is deleted with its
/// session.
///
/// The members that entered with it arrived before it, or before `ready` was created for it. It may not have
/// known of later ones.
pub(super) fn check(analysis: &Analysis<'_>, found: &mut Found) {
    let mut rooms: BTreeMap<&str, Room<'_>> = BTreeMap::new();
    for member in members(&analysis.run.events) {
        let room = rooms.entry(member.path).or_insert_with(|| Room::of(&analysis.replay, member.path));
        let Some((at, other)) = still_in(analysis, &member, room) else { continue };
        let what = format!("{} has left while another member was still in:", member.id);
        let violation =
            Violation::new(Invariant::B2, at, what).client(member.client).path(member.path).path(&other.path);
        found.push(analysis.client_of(other.owner).into_iter().fold(violation, Violation::client));
    }
}

fn still_in<'s>(
    analysis: &Analysis<'_>,
    member: &Member<'_>,
    room: &Room<'s>,
) -> Option<(Duration, &'s NodeLife)> {
    let ((entered, node), leaving, left) = (member.entered?, member.leaving?, member.left?);
    let (_, own) = room.lives(node, entered, analysis.tolerances()).next()?;
    let opened = opened(analysis, member.path, own.created.zxid);
    let grain = analysis.tolerances().grain;
    let stays = |other: &&(usize, &NodeLife)| {
        let (_, other) = other;
        other.path != node
            && other.created.zxid < opened
            && other.is_alive_at(leaving + grain)
            && other.is_alive_at(left + grain)
    };
    room.nodes.iter().find(stays).map(|(_, other)| (left, *other))
}

/// The transaction that created `ready` for a member that arrived with the transaction `arrived`; `arrived`
/// itself if `ready` existed.
fn opened(analysis: &Analysis<'_>, path: &str, arrived: i64) -> i64 {
    let is_ready = |node: &&NodeLife| node.folder() == path && node.path.ends_with("/ready");
    let was_open = analysis.replay.nodes().iter().filter(is_ready).any(|ready| {
        ready.created.zxid < arrived && ready.deleted.is_none_or(|deleted| deleted.when.zxid > arrived)
    });
    if was_open {
        return arrived;
    }
    let opening = analysis.run.journal.iter().find(|change| {
        change.zxid > arrived
            && change.kind == ChangeKind::Created
            && change.path.strip_prefix(path).is_some_and(|rest| rest == "/ready")
    });
    opening.map_or(arrived, |change| change.zxid)
}

#[cfg(test)]
mod tests {
    use crate::history::{BarrierEvents, HistoryBuilder};
    use crate::violation::Invariant::B2;

    fn in_the_room() -> (HistoryBuilder, [crate::history::Guest; 2]) {
        let mut history = HistoryBuilder::new();
        let both = [history.at(2_100).arrive(0, 2), history.arrive(1, 2)];
        history.at(2_105).open(0).at(2_110).enter(&both[0]).enter(&both[1]);
        (history, both)
    }

    #[test]
    fn a_member_that_leaves_waits_for_the_other_members() {
        let (mut history, [one, other]) = in_the_room();
        history.at(2_200).leaving(&one).delete_member(&one).at(2_300).leaving(&other).delete_member(&other);
        history.at(2_310).left(&one).left(&other).end(3_000).holds();
    }

    #[test]
    fn a_member_that_leaves_without_waiting_is_caught() {
        let (mut history, [one, other]) = in_the_room();
        history.at(2_200).leaving(&one).delete_member(&one).at(2_210).left(&one);
        history.at(2_300).leaving(&other).delete_member(&other).at(2_310).left(&other).end(3_000).breaks(B2);
    }

    #[test]
    fn no_member_waits_for_the_next_round() {
        let (mut history, [one, other]) = in_the_room();
        let late = history.at(2_150).arrive(2, 2);
        history.at(2_200).leaving(&one).delete_member(&one).leaving(&other).delete_member(&other);
        history.at(2_210).left(&one).left(&other).at(2_300).delete_member(&late).end(3_000).holds();
    }
}
