use crate::analysis::{Analysis, End};
use crate::attempt_trace::AttemptTrace;
use crate::event::{AttemptId, Grant};
use crate::journal_replay::NodeLife;
use crate::run::Tolerances;
use crate::violation::{Found, Invariant, Violation};
use std::time::Duration;

/// **Exclusion in the order of transactions**: for each grant there is a transaction at which its node was
/// there, belonged to the session of the grant, and was the first of its line; no two grants share one.
///
/// That is so because a line has one first at each transaction: two grants could share one only by sharing
/// their node. Those that do are turns with one ticket, each with a number of its own: M3 asks whether one
/// was over before the next began. The transaction came before the grant was returned. An attempt that is
/// granted by a node that is gone already did not know it yet: it knows at once that its client deleted the
/// node or its session ran out, and of deeds of others within the time that news take. For shared roles
/// ownership and presence are checked; R1, R3 and S1 ask which of them are admitted.
pub(super) fn check(analysis: &Analysis<'_>, found: &mut Found) {
    for trace in analysis.attempts.all() {
        let Some((at, grant)) = trace.granted else { continue };
        let wrong = |what: String| {
            Violation::new(Invariant::M2, at, what)
                .attempt(trace.id())
                .client(trace.client)
                .path(trace.attempt.path.clone())
                .path(grant.node.clone())
        };
        let Some((index, node)) = analysis.node_of(trace) else {
            found.push(wrong("granted by a node that there never was:".to_owned()));
            continue;
        };
        let sentences = [
            place(analysis, trace, at, node),
            ownership(analysis, trace, grant, node),
            presence(analysis, trace, at, node),
        ];
        found.extend(sentences.into_iter().flatten().map(wrong));
        let is_turn = |other: &AttemptId| {
            let number = |grant: &Grant| grant.turn.map(|turn| turn.number);
            let theirs = analysis.attempts.get(*other).and_then(|other| number(other.granted?.1));
            theirs.is_some() && number(grant).is_some_and(|ours| theirs != Some(ours))
        };
        let mut others = analysis.holders(index).iter();
        if let Some(other) = others.find(|other| **other < trace.id() && !is_turn(other)) {
            found.push(
                wrong("granted by the node that another one was granted by:".to_owned()).attempt(*other),
            );
        }
    }
}

/// Was it first in its line, and before it was granted?
fn place(analysis: &Analysis<'_>, trace: &AttemptTrace<'_>, at: Duration, node: &NodeLife) -> Option<String> {
    if node.folder() != trace.attempt.path || node.contender.is_none() {
        return Some("granted by a node that stands in no line for it:".to_owned());
    }
    match node.first {
        _ if !trace.is_exclusive() => None,
        None => Some("granted by a node that never was the first of its line:".to_owned()),
        Some(first) if first.at > at + analysis.tolerances().grain => {
            Some(format!("granted {:?} before its node was the first of its line:", first.at - at))
        }
        Some(_) => None,
    }
}

/// Did the node belong to the session that the client had?
fn ownership(
    analysis: &Analysis<'_>,
    trace: &AttemptTrace<'_>,
    grant: &Grant,
    node: &NodeLife,
) -> Option<String> {
    let (owner, session) = (node.owner, grant.session);
    if owner != session {
        return Some(format!("granted to session {session:#x} by a node of session {owner:#x}:"));
    }
    let generation = analysis.life(trace.client)?.generation_of(session)?;
    (generation < grant.generation).then(|| {
        format!(
            "granted in generation {} with session {session:#x} of generation {generation}:",
            grant.generation
        )
    })
}

/// Was the node still there, as far as its client could know?
fn presence(
    analysis: &Analysis<'_>,
    trace: &AttemptTrace<'_>,
    at: Duration,
    node: &NodeLife,
) -> Option<String> {
    let gone = node.gone?;
    let Tolerances { grain, news, reconnect, .. } = *analysis.tolerances();
    let since = at.saturating_sub(gone.when.at);
    match analysis.end_of(node, gone) {
        End::Own if since > grain => {
            Some(format!("granted {since:?} after its client had deleted its node:"))
        }
        End::Expired if since > grain => Some(format!("granted {since:?} after its session had run out:")),
        End::Others if since > news => {
            let life = analysis.life(trace.client)?;
            let heard = life.rough.spare(gone.when.at.saturating_sub(reconnect), at);
            heard.then(|| format!("granted {since:?} after its node was gone:"))
        }
        End::Own | End::Expired | End::Others => None,
    }
}

#[cfg(test)]
mod tests {
    use crate::event::{FaultKind, LinkState};
    use crate::history::HistoryBuilder;
    use crate::journal::EndCause::{Expired, Forced};
    use crate::violation::Invariant::M2;

    #[test]
    fn a_wake_up_is_no_grant() {
        let mut history = HistoryBuilder::new();
        let attempts = [0, 1, 2].map(|client| history.at(100).begin(client));
        for attempt in attempts {
            history.create(attempt);
        }
        history.at(110).grant(attempts[0]);
        // The second one leaves, the third one takes it for its turn.
        history.at(200).ended(attempts[1], crate::Ending::Cancelled).delete(attempts[1]);
        history.at(210).grant(attempts[2]).lost(attempts[2]).end(300).breaks_also(M2);
        assert_eq!(history.sentences(M2), ["granted by a node that never was the first of its line:"]);
    }

    #[test]
    fn a_grant_before_its_turn_is_caught() {
        let mut history = HistoryBuilder::new();
        let (first, second) = (history.at(100).begin(0), history.begin(1));
        history.create(first).create(second).at(110).grant(first).at(150).lost(first).grant(second);
        history.at(200).dropped(first).delete(first).end(300).breaks_also(M2);
    }

    #[test]
    fn the_node_of_an_older_session_is_no_place() {
        let mut history = HistoryBuilder::new();
        let attempt = history.at(100).begin(0);
        history.create(attempt).at(120).link(0, LinkState::Lost).connect(0, 9, 2);
        history.at(130).grant(attempt).end(300).breaks_also(M2);
        assert!(history.sentences(M2)[0].contains("by a node of session 0x1"));
    }

    #[test]
    fn the_session_of_an_older_generation_is_caught() {
        let mut history = HistoryBuilder::new();
        let attempt = history.at(100).begin(0);
        history.create(attempt).at(110).grant(attempt);
        history.clone().end(300).holds();
        for event in &mut history.run.events {
            if let crate::EventKind::Granted(_, grant) = &mut event.kind {
                grant.generation = 2;
            }
        }
        history.end(300).breaks(M2);
    }

    #[test]
    fn a_node_that_was_gone_before_its_turn_is_no_place() {
        // A hand-off that does not look at the own node.
        let mut history = HistoryBuilder::new();
        let (first, second) = (history.at(100).begin(0), history.begin(1));
        history.create(first).create(second).at(110).grant(first);
        let (ahead, own) = (history.node(first), history.node(second));
        history.at(200).delete_path(&own, 7).at(201).releasing(first).delete_path(&ahead, 1);
        history.released(first, true).at(203).grant(second).at(204).lost(second).end(300).breaks(M2);
    }

    #[test]
    fn a_grant_may_cross_with_the_news_that_its_node_is_gone() {
        let taken = |granted_at| {
            let mut history = HistoryBuilder::new();
            let attempt = history.at(100).begin(0);
            let own = history.create(attempt).node(attempt);
            history.at(101).delete_path(&own, 7).at(granted_at).grant(attempt).lost(attempt);
            history.end(900)
        };
        taken(150).holds();
        taken(400).breaks(M2);
    }

    #[test]
    fn a_link_that_is_cut_delays_the_news() {
        let mut history = HistoryBuilder::new();
        let attempt = history.at(100).begin(0);
        history.create(attempt).fault(0, FaultKind::Held).at(101).fault(0, FaultKind::Expired);
        history.end_session(1, Forced).at(800).heal(0, FaultKind::Held);
        history.grant(attempt).at(801).lost(attempt).end(900).holds();
    }

    #[test]
    fn nobody_is_granted_by_a_session_that_ran_out() {
        let mut history = HistoryBuilder::new();
        let attempt = history.at(100).begin(0);
        history.create(attempt).fault(0, FaultKind::Frozen).at(7_000).end_session(1, Expired);
        history.at(8_000).heal(0, FaultKind::Frozen).grant(attempt).lost(attempt).end(8_100).breaks(M2);
    }

    #[test]
    fn one_node_is_one_grant() {
        let mut history = HistoryBuilder::new();
        let first = history.at(100).begin(0);
        history.create(first).at(110).grant(first);
        let mut copy = history.run.events.last().unwrap().clone();
        let second = history.at(120).begin(0);
        if let crate::EventKind::Granted(id, _) = &mut copy.kind {
            *id = second;
        }
        history.tell(0, copy.kind).end(300).breaks_also(M2);
    }
}
