use crate::analysis::Analysis;
use crate::double_barriers::{Member, Room, members};
use crate::journal::ChangeKind;
use crate::journal_replay::NodeLife;
use crate::violation::{Found, Invariant, Violation};
use std::collections::BTreeMap;
use std::time::Duration;

/// **The way out of a double barrier**: a member has left only when the nodes of all members are gone that
/// were let in with it and were there when it wanted to leave. A member that crashed is gone with its
/// session.
///
/// The members let in with it came before it, or before the door was opened for it: of later ones it may not
/// have known.
pub(super) fn check(analysis: &Analysis<'_>, found: &mut Found) {
    let mut rooms: BTreeMap<&str, Room<'_>> = BTreeMap::new();
    for member in members(&analysis.run.events) {
        let room = rooms.entry(member.path).or_insert_with(|| Room::of(&analysis.replay, member.path));
        let Some((at, other)) = left_behind(analysis, &member, room) else { continue };
        let what = format!("{} has left, and another one was still in:", member.id);
        let violation =
            Violation::new(Invariant::B2, at, what).client(member.client).path(member.path).path(&other.path);
        found.push(analysis.client_of(other.owner).into_iter().fold(violation, Violation::client));
    }
}

fn left_behind<'s>(
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

/// The transaction by which the door was opened for a member that came by `came`: none after its own, when
/// the door was open by then.
fn opened(analysis: &Analysis<'_>, path: &str, came: i64) -> i64 {
    let is_ready = |node: &&NodeLife| node.folder() == path && node.path.ends_with("/ready");
    let was_open = analysis
        .replay
        .nodes()
        .iter()
        .filter(is_ready)
        .any(|ready| ready.created.zxid < came && ready.gone.is_none_or(|gone| gone.when.zxid > came));
    if was_open {
        return came;
    }
    let opening = analysis.run.journal.iter().find(|change| {
        change.zxid > came
            && change.kind == ChangeKind::Created
            && change.path.strip_prefix(path).is_some_and(|rest| rest == "/ready")
    });
    opening.map_or(came, |change| change.zxid)
}

#[cfg(test)]
mod tests {
    use crate::history::{BarrierEvents, HistoryBuilder};
    use crate::violation::Invariant::B2;

    fn in_the_room() -> (HistoryBuilder, [crate::history::Guest; 2]) {
        let mut history = HistoryBuilder::new();
        let both = [history.at(2_100).come(0, 2), history.come(1, 2)];
        history.at(2_105).open(0).at(2_110).enter(&both[0]).enter(&both[1]);
        (history, both)
    }

    #[test]
    fn who_leaves_waits_for_the_others() {
        let (mut history, [one, other]) = in_the_room();
        history.at(2_200).leaving(&one).gone(&one).at(2_300).leaving(&other).gone(&other);
        history.at(2_310).left(&one).left(&other).end(3_000).holds();
    }

    #[test]
    fn who_does_not_wait_is_caught() {
        let (mut history, [one, other]) = in_the_room();
        history.at(2_200).leaving(&one).gone(&one).at(2_210).left(&one);
        history.at(2_300).leaving(&other).gone(&other).at(2_310).left(&other).end(3_000).breaks(B2);
    }

    #[test]
    fn nobody_waits_for_the_next_round() {
        let (mut history, [one, other]) = in_the_room();
        let late = history.at(2_150).come(2, 2);
        history.at(2_200).leaving(&one).gone(&one).leaving(&other).gone(&other);
        history.at(2_210).left(&one).left(&other).at(2_300).gone(&late).end(3_000).holds();
    }
}
