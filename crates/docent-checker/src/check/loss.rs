use super::Found;
use crate::attempts::{Act, Deed, Story};
use crate::scene::{End, Scene};
use crate::truth::NodeLife;
use crate::violation::{Invariant, Violation};
use std::time::Duration;

/// **Loss** is told once, in time, for good, and not for nothing.
///
/// - `lost()` resolves once. After it, or any other word that a guard is not held, nothing says that it is.
/// - Nobody says that a guard is held, or uses it, when the server has let its session run out: not even a
///   process that was frozen, at its next look. Nor when its generation is over, nor, later than news take,
///   when others took it away.
/// - A holder is told by then: before the session runs out, or as soon as the process goes on.
/// - Nobody is told while the node is there and the link was well for a whole session timeout.
/// - The node of a lost guard stays until the guard is dropped or a margin is over: so long others wait for
///   its work to stop.
///
/// Things that go together are lost when one of them is. Assumed: a clock that runs whenever the world does,
/// a timeout of at least four ticks, `lost()` awaited for every guard, and `is_held` asked right before each
/// use. A use may still follow a freeze that began after it was asked.
pub(super) fn check(scene: &Scene<'_>, found: &mut Found) {
    for story in scene.attempts.all().filter(|story| story.granted.is_some()) {
        let mut wrong = unsaid(story);
        wrong.extend(for_nothing(scene, story));
        wrong.extend(after_its_generation(scene, story));
        if let Some((_, node)) = scene.node_of(story) {
            wrong.extend(said_late(scene, story, node));
            wrong.extend(told_late(scene, story, node));
            wrong.extend(taken_early(scene, story, node));
        }
        found.extend(wrong.into_iter().map(|(at, what)| {
            Violation::new(Invariant::M11, at, what)
                .attempt(story.id())
                .client(story.client)
                .path(story.attempt.path.clone())
                .path(story.granted.map(|(_, grant)| grant.node.clone()).unwrap_or_default())
        }));
    }
}

type Wrong = (Duration, String);

/// It was lost, and is held again; or lost twice.
fn unsaid(story: &Story<'_>) -> Vec<Wrong> {
    let mut wrong = Vec::new();
    let mut lost: Option<Act> = None;
    let mut told = false;
    for act in &story.acts {
        if matches!(act.what, Deed::Looked { held: true, cancelled: true }) {
            wrong.push((act.at, "said to be held with its token cancelled:".to_owned()));
        }
        if told && act.what == Deed::Lost {
            wrong.push((act.at, "told to be lost a second time:".to_owned()));
        }
        told |= act.what == Deed::Lost;
        match (lost, act.what.says()) {
            (None, Some(false)) => lost = Some(*act),
            (Some(lost), Some(true)) => {
                wrong.push((
                    act.at,
                    format!("held again by {:?}, after {:?} at {:?}:", act.what, lost.what, lost.at),
                ));
            }
            _ => {}
        }
    }
    wrong
}

/// It was told to be lost without a reason.
fn for_nothing(scene: &Scene<'_>, story: &Story<'_>) -> Option<Wrong> {
    let lost = story.known_lost()?;
    let life = scene.life(story.client)?;
    let well = life.apart.spare(lost.saturating_sub(scene.facts().timeout), lost);
    let by_then = |story: &Story<'_>| {
        let (_, node) = scene.node_of(story)?;
        Some(node.gone.is_none_or(|gone| gone.when.at > lost + scene.tolerances().grain))
    };
    let there =
        by_then(story)? && scene.attempts.together(story.id()).all(|other| by_then(other) != Some(false));
    (well && there && story.given_up().is_none_or(|over| over > lost))
        .then(|| (lost, "told to be lost while all was well:".to_owned()))
}

/// Something was said by a guard of a generation that its client knew to be over.
fn after_its_generation(scene: &Scene<'_>, story: &Story<'_>) -> Option<Wrong> {
    let over = scene.generation_end(story)?;
    let act = story.acts.iter().find(|act| act.index > over.index && act.what.says() == Some(true))?;
    Some((act.at, format!("said to be held by {:?} after its generation was over:", act.what)))
}

/// Somebody said that it is held, or used it, and could not have.
fn said_late(scene: &Scene<'_>, story: &Story<'_>, node: &NodeLife) -> Option<Wrong> {
    let gone = node.gone?;
    let due = scene.notice(story.client, node)?;
    let end = scene.end_of(node, gone);
    let last = match end {
        End::Expired => gone.when.at + scene.tolerances().grain,
        End::Others | End::Own => due,
    };
    let late = |act: &&Act| match act.what {
        Deed::Used(_) => act.at > due,
        what => what.says() == Some(true) && act.at > last,
    };
    let act = story.acts.iter().find(late)?;
    let why = if end == End::Expired { "its session had run out" } else { "its node was gone" };
    Some((act.at, format!("{:?} {:?} after {why}:", act.what, act.at.saturating_sub(gone.when.at))))
}

/// A holder was not told in time.
fn told_late(scene: &Scene<'_>, story: &Story<'_>, node: &NodeLife) -> Option<Wrong> {
    let gone = node.gone?;
    let (granted, _) = story.granted?;
    let mut due = scene.notice(story.client, node)?;
    if scene.end_of(node, gone) == End::Others {
        due = due.max(granted + scene.tolerances().news);
    }
    let late = match story.until() {
        Some(until) => until > due,
        None => scene.shows(due),
    };
    let told =
        story.until().map_or_else(|| "never".to_owned(), |until| format!("at {:.4}", until.as_secs_f64()));
    late.then(|| {
        (due, format!("its node was gone at {:.4}, which was told {told}:", gone.when.at.as_secs_f64()))
    })
}

/// Its client took the node of a lost guard before the guard's work had time to stop.
fn taken_early(scene: &Scene<'_>, story: &Story<'_>, node: &NodeLife) -> Option<Wrong> {
    let gone = node.gone.filter(|gone| scene.end_of(node, *gone) == End::Own)?;
    let lost = story.known_lost()?;
    let tolerances = scene.tolerances();
    let at = gone.when.at + tolerances.grain;
    let leaving = scene.leaving(story.client);
    let over = [story.given_up(), leaving].into_iter().flatten().any(|over| over <= at);
    let early = lost <= at && at + tolerances.scheduling < lost + scene.facts().margin();
    (early && !over).then(|| {
        let what =
            format!("its client took its node {:?} after it was lost:", gone.when.at.saturating_sub(lost));
        (gone.when.at, what)
    })
}

#[cfg(test)]
mod tests {
    use crate::event::{AttemptId, FaultKind, Handle, LinkState, What};
    use crate::journal::EndCause::{Closed, Expired, Forced};
    use crate::sketch::Sketch;
    use crate::violation::Invariant::M11;

    /// Cut off from 200 on; the session runs out at 6.5 s.
    fn cut() -> (Sketch, AttemptId) {
        let (mut sketch, attempt) = Sketch::of_holder();
        sketch.at(200).fault(0, FaultKind::Cut);
        (sketch, attempt)
    }

    fn expired(sketch: &mut Sketch) -> &mut Sketch {
        sketch.at(6_510).end_session(1, Expired)
    }

    #[test]
    fn who_woke_up_just_before_the_lease_was_over_gets_the_time_to_look() {
        let told = |at: u64| {
            let mut sketch = Sketch::new();
            let attempt = sketch.at(100).begin(0);
            sketch.create(attempt).at(110).grant(attempt);
            sketch.at(200).fault(0, FaultKind::Cut).at(1_100).fault(0, FaultKind::Frozen);
            let node = sketch.node(attempt);
            sketch.at(1_200).delete_path(&node, 4).at(7_180).heal(0, FaultKind::Frozen);
            sketch.at(at).lost(attempt).dropped(attempt).at(8_000).heal(0, FaultKind::Cut);
            sketch.end(9_000)
        };
        told(7_270).holds();
        told(7_300).breaks(M11);
    }

    #[test]
    fn who_is_cut_off_knows_before_its_session_runs_out() {
        let (mut sketch, attempt) = cut();
        sketch.at(4_100).looked(attempt, true).at(4_110).lost(attempt).looked(attempt, false);
        expired(&mut sketch).end(9_000).holds();
        let (mut sketch, attempt) = cut();
        expired(&mut sketch).at(6_600).lost(attempt).end(9_000).breaks(M11);
        let (mut sketch, _) = cut();
        expired(&mut sketch).end(9_000).breaks(M11);
    }

    #[test]
    fn a_head_start_can_be_asked_for() {
        let (mut sketch, attempt) = cut();
        sketch.run.facts.tolerances.head_start = std::time::Duration::from_secs(1);
        sketch.at(6_000).lost(attempt);
        expired(&mut sketch).end(9_000).breaks(M11);
    }

    #[test]
    fn nobody_says_held_when_the_session_has_run_out() {
        let says: [fn(AttemptId) -> What; 3] = [
            |attempt| What::Looked { attempt, held: true, cancelled: false },
            |attempt| What::Verified { attempt, held: Some(true) },
            |attempt| What::Reentered(attempt, Handle::Given),
        ];
        for what in says {
            let (mut sketch, attempt) = Sketch::of_holder();
            sketch.at(200).fault(0, FaultKind::Frozen);
            expired(&mut sketch).at(9_000).heal(0, FaultKind::Frozen);
            sketch.clone().lost(attempt).end(9_100).holds();
            sketch.tell(0, what(attempt)).at(9_001).lost(attempt);
            if matches!(what(attempt), What::Reentered(..)) {
                sketch.tell(0, What::InnerReleased(attempt));
            }
            sketch.end(9_100).breaks(M11);
        }
    }

    #[test]
    fn a_use_may_follow_a_freeze_but_nothing_else() {
        let (mut sketch, attempt) = Sketch::of_holder();
        sketch.at(200).fault(0, FaultKind::Frozen);
        expired(&mut sketch).at(9_000).heal(0, FaultKind::Frozen);
        sketch.clone().used(attempt).lost(attempt).end(9_100).holds();
        sketch.lost(attempt).at(9_500).used(attempt).end(9_600).breaks(M11);
        let (mut sketch, attempt) = cut();
        sketch.at(4_000).lost(attempt);
        expired(&mut sketch).at(6_600).used(attempt).end(9_000).breaks(M11);
    }

    #[test]
    fn lost_is_told_once_and_for_good() {
        let (mut sketch, attempt) = cut();
        sketch.at(4_100).lost(attempt);
        sketch.clone().lost(attempt).end(4_200).breaks(M11);
        sketch.clone().looked(attempt, true).end(4_200).breaks(M11);
        sketch.tell(0, What::Verified { attempt, held: Some(true) }).end(4_200).breaks(M11);
        let (mut sketch, attempt) = cut();
        sketch.at(4_100).looked(attempt, false).at(4_300).looked(attempt, true).end(4_400).breaks(M11);
    }

    #[test]
    fn a_cancelled_token_and_a_held_guard_contradict_each_other() {
        let (mut sketch, attempt) = cut();
        sketch.at(300).tell(0, What::Looked { attempt, held: true, cancelled: true }).end(400).breaks(M11);
    }

    #[test]
    fn the_end_of_the_generation_is_the_end_of_its_guards() {
        let (mut sketch, attempt) = Sketch::of_holder();
        sketch.at(200).end_session(1, Forced).at(202).link(0, LinkState::Lost).looked(attempt, true);
        sketch.at(203).lost(attempt).end(400).breaks(M11);
    }

    #[test]
    fn of_what_others_take_away_it_knows_as_news() {
        let taken = |lost_at: u64| {
            let (mut sketch, attempt) = Sketch::of_holder();
            let node = sketch.node(attempt);
            sketch.at(3_000).delete_path(&node, 7).at(lost_at).lost(attempt);
            sketch.end(9_000)
        };
        taken(3_150).holds();
        taken(3_300).breaks(M11);
    }

    #[test]
    fn nothing_is_lost_for_nothing() {
        let (mut sketch, attempt) = Sketch::of_holder();
        sketch.clone().at(7_000).lost(attempt).end(8_000).breaks(M11);
        sketch.at(6_000).fault(0, FaultKind::Slow).at(7_000).lost(attempt).end(8_000).holds();
    }

    #[test]
    fn the_work_of_a_lost_guard_gets_a_margin_to_stop() {
        let deleted = |at: u64| {
            let (mut sketch, attempt) = cut();
            sketch.at(4_100).lost(attempt).at(4_200).heal(0, FaultKind::Cut).at(at).delete(attempt);
            sketch.end(12_000)
        };
        deleted(6_100).holds();
        deleted(5_000).breaks(M11);
    }

    #[test]
    fn a_session_is_not_closed_while_its_lost_guards_live() {
        let (mut sketch, attempt) = cut();
        sketch.at(4_100).lost(attempt);
        sketch.clone().at(4_200).dropped(attempt).at(4_300).end_session(1, Closed).end(4_400).holds();
        sketch.at(4_300).end_session(1, Closed).end(4_400).breaks(M11);
    }
}
