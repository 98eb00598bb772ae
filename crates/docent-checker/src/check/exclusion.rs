use crate::analysis::{Analysis, End};
use crate::attempt_trace::AttemptTrace;
use crate::event::{AttemptId, Grant};
use crate::journal_replay::NodeLife;
use crate::run::Tolerances;
use crate::violation::{Found, Invariant, Violation};
use std::time::Duration;

/// **Exclusion in the order of transactions**: for each grant there is a transaction at which its node
/// existed, belonged to the session of the grant, and was first in its line. No two grants share such a
/// transaction.
///
/// - A line has one first node at each transaction, so two grants could share a transaction only by sharing a
///   node. Grants that share a node are turns with one ticket, each with a separate number. M3 checks that
///   one turn ended before the next began.
/// - The transaction preceded the return of the grant.
/// - If the node had already been deleted at the grant, the client did not know that yet. It knows
///   immediately that it deleted the node itself or that its session expired, and it learns of other
///   deletions within the time for a notification.
/// - For shared roles only ownership and presence are checked here. R1, R3 and S1 check which of them are
///   admitted.
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
            found.push(wrong("granted on a node that never existed:".to_owned()));
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
            let first_number = analysis.attempts.get(*other).and_then(|other| number(other.granted?.1));
            first_number.is_some() && number(grant).is_some_and(|own_number| first_number != Some(own_number))
        };
        let mut others = analysis.holders(index).iter();
        if let Some(other) = others.find(|other| **other < trace.id() && !is_turn(other)) {
            found.push(
                wrong("granted on the node on which another attempt was granted:".to_owned()).attempt(*other),
            );
        }
    }
}

/// Checks that the node was first in its line before the grant.
fn place(analysis: &Analysis<'_>, trace: &AttemptTrace<'_>, at: Duration, node: &NodeLife) -> Option<String> {
    if node.folder() != trace.attempt.path || node.contender.is_none() {
        return Some("granted on a node outside of the line:".to_owned());
    }
    match node.first {
        _ if !trace.is_exclusive() => None,
        None => Some("granted on a node that never was the first of its line:".to_owned()),
        Some(first) if first.at > at + analysis.tolerances().grain => {
            Some(format!("granted {:?} before its node was the first of its line:", first.at - at))
        }
        Some(_) => None,
    }
}

/// Checks that the node belonged to the session of the grant.
fn ownership(
    analysis: &Analysis<'_>,
    trace: &AttemptTrace<'_>,
    grant: &Grant,
    node: &NodeLife,
) -> Option<String> {
    let (owner, session) = (node.owner, grant.session);
    if owner != session {
        return Some(format!("granted to session {session:#x} on a node of session {owner:#x}:"));
    }
    let generation = analysis.life(trace.client)?.generation_of(session)?;
    (generation < grant.generation).then(|| {
        format!(
            "granted in generation {} with session {session:#x} of generation {generation}:",
            grant.generation
        )
    })
}

/// Checks that the node still existed, as far as the client could know.
fn presence(
    analysis: &Analysis<'_>,
    trace: &AttemptTrace<'_>,
    at: Duration,
    node: &NodeLife,
) -> Option<String> {
    let deleted = node.deleted?;
    let Tolerances { grain, notification, reconnect, .. } = *analysis.tolerances();
    let since = at.saturating_sub(deleted.when.at);
    match analysis.end_of(node, deleted) {
        End::Own if since > grain => {
            Some(format!("granted {since:?} after its client had deleted its node:"))
        }
        End::Expired if since > grain => Some(format!("granted {since:?} after its session expired:")),
        End::ThirdParty if since > notification => {
            let life = analysis.life(trace.client)?;
            let received = life.rough.spare(deleted.when.at.saturating_sub(reconnect), at);
            received.then(|| format!("granted {since:?} after its node was deleted:"))
        }
        End::Own | End::Expired | End::ThirdParty => None,
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
        // The second contender leaves, and the third takes this for its own turn.
        history.at(200).ended(attempts[1], crate::Ending::Cancelled).delete(attempts[1]);
        history.at(210).grant(attempts[2]).lost(attempts[2]).end(300).breaks_also(M2);
        assert_eq!(history.sentences(M2), ["granted on a node that never was the first of its line:"]);
    }

    #[test]
    fn a_grant_before_its_turn_is_caught() {
        let mut history = HistoryBuilder::new();
        let (first, second) = (history.at(100).begin(0), history.begin(1));
        history.create(first).create(second).at(110).grant(first).at(150).lost(first).grant(second);
        history.at(200).dropped(first).delete(first).end(300).breaks_also(M2);
    }

    #[test]
    fn a_node_of_an_older_session_grants_nothing() {
        let mut history = HistoryBuilder::new();
        let attempt = history.at(100).begin(0);
        history.create(attempt).at(120).link(0, LinkState::Lost).connect(0, 9, 2);
        history.at(130).grant(attempt).end(300).breaks_also(M2);
        assert!(history.sentences(M2)[0].contains("on a node of session 0x1"));
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
    fn a_node_that_was_deleted_before_its_turn_grants_nothing() {
        // The hand-off does not check the contender's own node.
        let mut history = HistoryBuilder::new();
        let (first, second) = (history.at(100).begin(0), history.begin(1));
        history.create(first).create(second).at(110).grant(first);
        let (ahead, own) = (history.node(first), history.node(second));
        history.at(200).delete_path(&own, 7).at(201).releasing(first).delete_path(&ahead, 1);
        history.released(first, true).at(203).grant(second).at(204).lost(second).end(300).breaks(M2);
    }

    #[test]
    fn a_grant_may_cross_with_the_notification_that_its_node_was_deleted() {
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
    fn a_cut_link_delays_the_notification() {
        let mut history = HistoryBuilder::new();
        let attempt = history.at(100).begin(0);
        history.create(attempt).fault(0, FaultKind::Held).at(101).fault(0, FaultKind::Expired);
        history.end_session(1, Forced).at(800).heal(0, FaultKind::Held);
        history.grant(attempt).at(801).lost(attempt).end(900).holds();
    }

    #[test]
    fn an_expired_session_grants_nothing() {
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
        history.record(0, copy.kind).end(300).breaks_also(M2);
    }
}
